#include "trainer/defaults.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string_view>

#include "base/files.h"
#include "data/testing.h"
#include "graph/models/models.h"
#include "image/testing.h"
#include "optimizer/rules.h"
#include "record/safetensors.h"
#include "trainer/job.h"

namespace trireme {
namespace {

// A command line, as far as its keys go.
struct Line {
  explicit Line(const std::vector<std::string>& settings) {
    Bind(sections, recipe);
    for (const std::string& setting : settings) sections.SetAssignment(setting);
  }
  std::string Complete() {  // what was chosen
    return PrepareJob(recipe, BackendOf(recipe), {}, true, FindOpenKeys(sections)).chosen;
  }
  const Recipe& Completed() {
    CompleteRecipe(FindOpenKeys(sections), recipe);
    return recipe;
  }

  Recipe recipe;
  Sections sections;
};

TEST(Defaults, TheDataChooseTheModel) {
  const std::pair<const char*, const char*> cases[] = {{"iris", "mlp:*-64-32-*"},
                                                       {"synthetic:3x3x1:2:20", "mlp:*-64-32-*"},
                                                       {"synthetic:28x28x1:10:20", "cnn"},
                                                       {"synthetic:32x32x3:10:20", "cnn"},
                                                       {"synthetic:64x64x3:2:20", "resnet18"}};
  for (const auto& [source, model] : cases) {
    EXPECT_EQ(Line({std::string("data.source=") + source}).Completed().model.name, model) << source;
  }
  EXPECT_EQ(Line({"model.name=mlp:4-9-3"}).Completed().model.name, "mlp:4-9-3");
}

TEST(Defaults, TheOptimizerChoosesTheRate) {
  const std::string pictures = "data.source=synthetic:28x28x1:10:20";
  for (const RuleDef& rule : AllRules()) {
    if (rule.whole) continue;
    const Recipe recipe = Line({pictures, std::string("optimizer.name=") + rule.name}).Completed();
    EXPECT_EQ(recipe.optimizer.lr, rule.rate) << rule.name;
    EXPECT_EQ(recipe.optimizer.schedule, "cosine");
    EXPECT_EQ(recipe.optimizer.weight_decay, 0);
  }
  EXPECT_EQ(FindRule("adam").rate, 0.001);
  EXPECT_EQ(FindRule("adamw").rate, 0.001);
  EXPECT_EQ(Line({"optimizer.lr=0.5"}).Completed().optimizer.lr, 0.5);
  EXPECT_EQ(Line({"optimizer.schedule=constant"}).Completed().optimizer.schedule, "constant");
  // Without momentum a step is a tenth as long.
  EXPECT_NEAR(Line({"optimizer.momentum=0"}).Completed().optimizer.lr, 10 * FindRule("sgd").rate,
              1e-9);
}

TEST(Defaults, WhatCountsEvaluationsHasOneInEveryEpoch) {
  const std::string table = "data.source=synthetic:1x1x7:3:500";
  EXPECT_EQ(Line({table}).Completed().trainer.evaluate_every, 10);
  for (const char* setting : {"trainer.patience=3", "optimizer.schedule=plateau"}) {
    EXPECT_EQ(Line({table, setting}).Completed().trainer.evaluate_every, 1) << setting;
  }
}

TEST(Defaults, TheRowsOfATableChooseTheSettings) {
  int64_t before = 0;
  for (const TableRule& rule : TableRules()) {
    EXPECT_GT(rule.below, before);
    EXPECT_EQ(&RuleFor(before), &rule);
    EXPECT_EQ(&RuleFor(rule.below - 1), &rule);
    before = rule.below;
  }
  const auto settings = [](int64_t rows) {
    return Line({fmt::format("data.source=synthetic:1x1x7:3:{}", rows)}).Completed();
  };
  const Recipe few = settings(500), many = settings(4000);  // 3,200 train
  EXPECT_EQ(few.model.name, "mlp:*-64-32-*");
  EXPECT_EQ(few.trainer.batch, IntOrWord(16));
  EXPECT_EQ(few.trainer.epochs, 200);
  EXPECT_EQ(many.model.name, "mlp:*-128-64-*");
  EXPECT_EQ(many.trainer.batch, IntOrWord(32));
  EXPECT_EQ(many.trainer.epochs, 100);
  EXPECT_EQ(many.trainer.evaluate_every, 5);
  EXPECT_EQ(many.trainer.checkpoint_epochs, 25);
  EXPECT_EQ(many.optimizer.name, "adamw");
  EXPECT_EQ(many.optimizer.lr, 0.003);
  EXPECT_EQ(many.optimizer.weight_decay, 1);
  EXPECT_EQ(many.optimizer.warmup_epochs, 5);
  EXPECT_EQ(many.data.normalize, "standard");
}

TEST(Defaults, WhatIsGivenForATableStays) {
  const auto with = [](const std::string& setting) {
    return Line({"data.source=iris", setting}).Completed();
  };
  EXPECT_EQ(with("trainer.batch=4").trainer.batch, IntOrWord(4));
  EXPECT_EQ(with("trainer.epochs=3").trainer.epochs, 3);
  EXPECT_EQ(with("trainer.epochs=3").trainer.evaluate_every, 1);
  EXPECT_EQ(with("trainer.steps=9").trainer.epochs, TrainerOptions{}.epochs);
  EXPECT_EQ(with("trainer.patience=5").trainer.evaluate_every, 1);
  EXPECT_EQ(with("optimizer.name=sgd").optimizer.name, "sgd");
  EXPECT_EQ(with("optimizer.name=sgd").optimizer.weight_decay, 0);
  EXPECT_EQ(with("optimizer.momentum=0.5").optimizer.name, "sgd");
  EXPECT_EQ(with("strategy.name=local-sgd").optimizer.name, "sgd");
  EXPECT_EQ(with("optimizer.weight_decay=0").optimizer.weight_decay, 0);
  EXPECT_EQ(with("model.name=mlp").model.name, "mlp");
  EXPECT_EQ(with("optimizer.name=lbfgs").trainer.epochs, TrainerOptions{}.epochs);
  Line high({"data.source=iris", "optimizer.lr=0.1"});
  high.Completed();
  const auto remarks = OptimizerRemarks(high.sections, high.recipe.optimizer);
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_NE(remarks[0].find("0.1 is high for adamw"), std::string::npos) << remarks[0];
}

// A folder of CIFAR-10's files, and one of photos: few samples, as large as the real ones.
class Pictures {
 public:
  Pictures() {
    folder_.Write("data_batch_1.bin", CifarRecords(8));
    folder_.Write("test_batch.bin", CifarRecords(4));
    const std::string photo = MakePng(SmoothPicture(150, 150));
    for (const char* part : {"seg_train", "seg_test"}) {
      for (const char* name : {"sea", "street"}) {
        MakeDirectories(folder_.path() + "/" + part + "/" + name);
        for (int i = 0; i < 3; ++i)
          folder_.Write(fmt::format("{}/{}/{}.png", part, name, i), photo);
      }
    }
  }
  std::string cifar() const { return "data.source=cifar10:" + folder_.path(); }
  std::string photos() const { return "data.source=images:" + folder_.path(); }

 private:
  TemporaryFolder folder_;
};

TEST(Defaults, PicturesFollowTheRecipeForTheirKind) {
  const Pictures pictures;
  const std::pair<std::string, const char*> cases[] = {{pictures.cifar(), "cifar10-resnet18"},
                                                       {pictures.photos(), "scenes-resnet18"}};
  for (const auto& [source, name] : cases) {
    Line chosen({source}), recipe({source});
    chosen.Completed();
    LoadRecipe(recipe.sections, name);
    // What the data and their number decide: evaluations, checkpoints, a batch of so few samples.
    for (TrainerOptions* trainer : {&chosen.recipe.trainer, &recipe.recipe.trainer}) {
      trainer->evaluate_every = trainer->checkpoint_epochs = 1;
      trainer->batch = 1;
    }
    recipe.recipe.data.task = chosen.recipe.data.task;
    recipe.recipe.model.loss = chosen.recipe.model.loss;
    recipe.recipe.data.size = chosen.recipe.data.size;
    EXPECT_EQ(ConfigText(chosen.recipe), ConfigText(recipe.recipe)) << name;
  }
  EXPECT_EQ(Line({pictures.photos()}).Completed().data.size, 112);
  EXPECT_EQ(Line({pictures.photos()}).Completed().trainer.batch, IntOrWord(6));
  EXPECT_EQ(Line({pictures.photos()}).Completed().trainer.evaluate_every, 3);
  EXPECT_EQ(
      Line({pictures.photos(), "transport.ranks=2"}).Complete(),
      "data.size 112 for pictures of their size, as recipe scenes-resnet18 for 6 photos, resnet18, "
      "random-resized-crop,flip, batch 6, 60 epochs, sgd at 0.05, cosine, warm-up of 5 epochs");
  // Pictures of idx files are not cut when they are read.
  TemporaryFolder folder;
  for (const char* part : {"train", "t10k"}) {
    folder.Write(part + std::string("-images-idx4-ubyte"),
                 Idx({4, 96, 96, 3}, SomeBytes(4 * 96 * 96 * 3)));
    folder.Write(part + std::string("-labels-idx1-ubyte"), Idx({4}, SomeLabels(4, 2)));
  }
  const Recipe uncut = Line({"data.source=idx:" + folder.path()}).Completed();
  EXPECT_EQ(uncut.data.augment, "crop-flip");
  EXPECT_EQ(uncut.model.smoothing, Line({pictures.photos()}).Completed().model.smoothing);
  // Made pictures have nothing to learn that augmentation helps with.
  EXPECT_EQ(Line({"data.source=synthetic:32x32x3:10:20"}).Completed().data.augment, "none");
  // Each row can be reached, by a recipe that there is.
  int64_t before = 0;
  std::string_view words;
  for (const PictureRule& rule : PictureRules()) {
    if (words != rule.words) before = 0;
    words = rule.words;
    const SampleShape shape =
        words == KindOf(Shape{32, 32, 3}).words ? SampleShape{32, 32, 3} : SampleShape{224, 224, 3};
    EXPECT_EQ(RuleFor(shape, before), &rule);
    EXPECT_NO_THROW(ReadRecipe(rule.recipe));
    before = rule.below;
  }
  EXPECT_EQ(RuleFor({28, 28, 1}, 100), nullptr);
}

TEST(Defaults, WhatIsGivenForPicturesStays) {
  const Pictures pictures;
  const auto with = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> all = {pictures.photos()};
    all.insert(all.end(), settings.begin(), settings.end());
    return Line(all).Completed();
  };
  EXPECT_EQ(with({"data.augment=none"}).data.augment, "none");
  EXPECT_EQ(with({"data.size=64"}).data.size, 64);
  EXPECT_EQ(with({"data.normalize=standard"}).data.normalize, "standard");
  EXPECT_EQ(with({"model.smoothing=0"}).model.smoothing, 0);
  EXPECT_EQ(with({"optimizer.weight_decay=0"}).optimizer.weight_decay, 0);
  EXPECT_EQ(with({"optimizer.lr=0.3"}).optimizer.lr, 0.3);
  EXPECT_NEAR(with({"optimizer.momentum=0"}).optimizer.lr, 0.5, 1e-12);  // ten times the recipe's
  EXPECT_EQ(with({"trainer.batch=4"}).trainer.batch, IntOrWord(4));
  EXPECT_EQ(with({"trainer.steps=9"}).trainer.epochs, TrainerOptions{}.epochs);
  const Recipe short_run = with({"trainer.epochs=3"});
  EXPECT_EQ(short_run.trainer.epochs, 3);
  EXPECT_EQ(short_run.trainer.evaluate_every, 1);
  EXPECT_EQ(short_run.optimizer.warmup_epochs, 0.3);
  const Recipe deeper = with({"model.name=resnet34"});
  EXPECT_EQ(deeper.model.name, "resnet34");
  EXPECT_EQ(deeper.data.augment, "random-resized-crop,flip");
  // Another rule, or a strategy, has rates of its own; a network that somebody chose may be small.
  const Recipe adam = with({"optimizer.name=adam"});
  EXPECT_EQ(adam.optimizer.lr, FindRule("adam").rate);
  EXPECT_FALSE(adam.optimizer.nesterov);
  EXPECT_EQ(with({"strategy.name=local-sgd"}).optimizer.lr, FindRule("sgd").rate);
  EXPECT_EQ(with({"optimizer.name=lbfgs"}).data.augment, "none");
  const Recipe transformer = with({"model.name=vit_ti"});
  EXPECT_EQ(transformer.optimizer.name, "adamw");
  EXPECT_EQ(transformer.optimizer.lr, FindRule("adamw").rate);
  EXPECT_EQ(transformer.optimizer.weight_decay, 0.05);
  EXPECT_EQ(transformer.data.augment, "none");
  EXPECT_EQ(with({"model.name=vit_ti", "optimizer.name=sgd"}).optimizer.name, "sgd");
  const Recipe mlp = with({"model.name=mlp"});
  EXPECT_EQ(mlp.data.augment, "none");
  EXPECT_EQ(mlp.trainer.epochs, TrainerOptions{}.epochs);
}

TEST(Defaults, DeepNetworksWarmUp) {
  const std::vector<std::string> resnet = {"data.source=synthetic:64x64x3:2:64", "trainer.batch=8"};
  const auto warmup = [&](const std::string& setting) {
    std::vector<std::string> settings = resnet;
    settings.push_back(setting);
    return Line(settings).Completed().optimizer.warmup_epochs;
  };
  EXPECT_EQ(warmup("trainer.epochs=3"), 0.3);
  EXPECT_EQ(warmup("trainer.epochs=90"), 1);
  EXPECT_EQ(warmup("trainer.steps=16"), 0.2);  // two epochs
  EXPECT_EQ(warmup("optimizer.warmup_epochs=0"), 0);
  EXPECT_EQ(Line({"data.source=synthetic:28x28x1:10:20"}).Completed().optimizer.warmup_epochs, 0);
}

TEST(Defaults, WhatWasChosenIsSaid) {
  EXPECT_EQ(Line({"data.source=iris"}).Complete(),
            "mlp:*-64-32-*, batch 16, 200 epochs for a table of 120 rows, adamw at 0.003 with a "
            "weight decay of 1, cosine, warm-up of 10 epochs");
  const std::vector<std::string> given = {"data.source=synthetic:28x28x1:10:20", "model.name=mlp",
                                          "optimizer.lr=1", "optimizer.schedule=constant"};
  EXPECT_EQ(Line(given).Complete(), "");
}

TEST(Defaults, ARecipeThatLeavesKeysOutMeansTheirDefaults) {
  Recipe recipe;
  recipe.model.name = "mlp:4-8-3";
  const Job job = PrepareJob(recipe, BackendOf(recipe));
  EXPECT_EQ(job.recipe.optimizer.lr, OptimizerOptions{}.lr);
  EXPECT_EQ(job.recipe.optimizer.schedule, "constant");
  EXPECT_EQ(job.chosen, "");
}

TEST(Defaults, GivenWeightsLearnSlowlyAndSeeWhatTheyWereTrainedWith) {
  const TemporaryDirectory folder;
  const std::string file = folder / "tv.safetensors";
  {
    SafetensorsWriter writer(file);
    const int64_t shape[] = {1};
    const float value[] = {7};
    writer.Add("bn1.num_batches_tracked", shape, value);
    writer.Finish();
  }
  const std::vector<std::string> settings = {"data.source=synthetic:64x64x3:2:64",
                                             "trainer.init=" + file};
  const Recipe recipe = Line(settings).Completed();
  EXPECT_NEAR(recipe.optimizer.lr, 0.1 * FindRule("sgd").rate, 1e-12);
  EXPECT_EQ(recipe.data.normalize, "imagenet");
  EXPECT_EQ(NormalizationOfWeights(file, "mlp"), "");
  const Pictures pictures;
  const Recipe photos = Line({pictures.photos(), "trainer.init=" + file}).Completed();
  EXPECT_NEAR(photos.optimizer.lr, 0.005, 1e-12);  // a tenth of the recipe's
  EXPECT_EQ(photos.trainer.epochs, 20);            // a third
  EXPECT_EQ(photos.data.size, 0);                  // as the weights were trained

  // A checkpoint of a run: as that run.
  const std::string checkpoint = folder / "run/checkpoints/step-1";
  MakeDirectories(checkpoint);
  ReplaceFile(checkpoint + "/state.json", "{}");
  ReplaceFile(folder / "run/config.toml", "[data]\nnormalize = \"minmax\"\n");
  EXPECT_EQ(NormalizationOfWeights(checkpoint + "/model.safetensors", "mlp"), "minmax");
  EXPECT_EQ(NormalizationOfWeights(folder / "run", "mlp"), "minmax");
}

TEST(Defaults, RemarksOnWhatAnOptimizerDoesNotUse) {
  const auto remarks = [](const std::vector<std::string>& settings, const std::string& toml) {
    Line line(settings);
    line.sections.Load(ParseToml(toml, "r.toml"), "r.toml");
    return OptimizerRemarks(line.sections, line.recipe.optimizer);
  };
  EXPECT_EQ(remarks({"optimizer.name=adam", "optimizer.nesterov=true", "optimizer.lr=0.001"}, ""),
            (std::vector<std::string>{
                "adam does not use optimizer.nesterov (--set optimizer.nesterov=true)"}));
  EXPECT_EQ(remarks({"optimizer.beta1=0.8"}, "").size(), 1u);
  const std::string recipe = "[optimizer]\nname = \"sgd\"\nlr = 0.05\nnesterov = true\n";
  EXPECT_EQ(remarks({}, recipe).size(), 0u);
  EXPECT_EQ(remarks({"optimizer.name=adam", "optimizer.lr=0.05"}, recipe).size(), 0u);
  const auto much = remarks({"optimizer.name=adam"}, recipe);
  ASSERT_EQ(much.size(), 1u);
  EXPECT_NE(much[0].find("0.05 is high for adam"), std::string::npos) << much[0];
}

}  // namespace
}  // namespace trireme
