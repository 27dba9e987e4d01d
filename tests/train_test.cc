// What a run leaves behind.
#include <filesystem>

#include "base/text.h"
#include "support/whole_test.h"

namespace trireme::whole {
namespace {

using TrainTest = WholeTest;

TEST_F(TrainTest, WithoutAnyWordsTrainsIris) {
  Succeed({"train", "--out", "a"});
  for (const char* name : {"config.toml", "metrics.jsonl", "summary.json", "checkpoints/latest"}) {
    EXPECT_TRUE(Exists(At(std::string("a/") + name))) << name;
  }
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    EXPECT_TRUE(Exists(At(Latest("a") + "/" + name))) << name;
  }
  EXPECT_GT(Number("a", "test_accuracy"), 0.85);
  EXPECT_GT(Number("a", "samples_per_second"), 0);
  EXPECT_EQ(Number("a", "epochs"), 100);
  EXPECT_EQ(Number("a", "steps"), 1500);
  EXPECT_EQ(Summary("a").At("classes").Items().size(), 3u);
  EXPECT_EQ(Summary("a").At("confusion").Items().size(), 3u);
  ASSERT_EQ(Epochs("a").size(), 100u);
  const Json epoch = Epochs("a")[5];
  double measured = 0;
  for (const auto& [name, seconds] : epoch.At("times").Members()) measured += seconds.AsDouble();
  EXPECT_GT(measured, 0);
  EXPECT_LE(measured, (1 + 1e-9) * epoch.At("seconds").AsDouble());
}

// Whoever names data or a model follows no recipe, by whatever flag.
TEST_F(TrainTest, FlagsAndKeysMeanTheSame) {
  const auto config = [&](const Words& words) {
    static int number = 0;
    const std::string run = "c" + std::to_string(number++);
    Succeed(Words{"train", "--steps", "2", "--out", run} + words);
    return Read(run + "/config.toml");
  };
  const std::string none = config({"--data", "iris"});
  EXPECT_EQ(none, config({"--set", "data.source=iris"}));
  EXPECT_EQ(none, config({"--model", "mlp:*-64-32-*"}));
  EXPECT_EQ(none, config({"--set", "model.name=mlp:*-64-32-*"}));
  for (const char* part : {"name = \"mlp:*-64-32-*\"", "name = \"adamw\"", "lr = 0.003",
                           "schedule = \"cosine\"", "batch = 16"}) {
    EXPECT_NE(none.find(part), none.npos) << part;
  }
  EXPECT_NE(config({}), none);
  EXPECT_EQ(config({}), config({"iris"}));
  EXPECT_NE(config({"--data", "iris", "--optimizer", "adam"}).find("lr = 0.001"), none.npos);
  EXPECT_NE(config({"iris", "--optimizer", "adam"}).find("lr = 0.02"), none.npos);
}

TEST_F(TrainTest, WhatNobodySaysIsChosenForTheDataAndLearns) {
  const Outcome run =
      Succeed({"train", "--data", "synthetic:8x8x1:5:1000", "--epochs", "3", "--out", "a"});
  EXPECT_NE(run.err.find("no recipe: cnn for small images, sgd at 0.02, cosine"), run.err.npos)
      << run.err;
  EXPECT_EQ(run.err.find("learned nothing"), run.err.npos) << run.err;
  EXPECT_GT(Number("a", "test_accuracy"), 0.9);
  Succeed({"train", "a/config.toml", "--out", "b"});
  EXPECT_EQ(Hash("a"), Hash("b"));
  const Outcome plan = Succeed({"train", "--data", "iris", "--dry-run"});
  EXPECT_NE(plan.out.find("model mlp:*-64-32-*, adamw at 0.003, cosine"), plan.out.npos)
      << plan.out;
}

// Other samples stand in for those that must be fetched.
TEST_F(TrainTest, EveryFashionRecipeIsPlanned) {
  int recipes = 0;
  for (const auto& file : std::filesystem::directory_iterator(TRIREME_SOURCE_DIR "/recipes")) {
    const std::string name = file.path().stem().string();
    if (!name.starts_with("fashion-")) continue;
    Succeed({"train", name, "--data", "synthetic:28x28x1:10:400", "--dry-run"});
    ++recipes;
  }
  EXPECT_GE(recipes, 14);
}

TEST_F(TrainTest, ANetworkThatHasLearnedNothingIsTold) {
  const Words words = {"train",   "--data",   "synthetic:8x8x1:5:500",
                       "--model", "mlp",      "--lr",
                       "1e-9",    "--epochs", "2"};
  const Words ways[] = {{},
                        {"--json"},
                        {"--ranks", "3", "--strategy", "easgd"},
                        {"--ranks", "2", "--transport", "shm"}};
  int number = 0;
  for (const Words& way : ways) {
    const std::string said =
        Succeed(words + way + Words{"--out", "r" + std::to_string(number++)}).err;
    const size_t at = said.find("the network has learned nothing: the training loss ");
    ASSERT_NE(at, said.npos) << said;
    EXPECT_EQ(said.find("learned nothing", at + 30), said.npos) << said;
    EXPECT_NE(said.find("try --lr 0.02"), said.npos) << said;
  }
}

TEST_F(TrainTest, ItIsToldSoAfterTheFirstEpoch) {
  const Words words = {"train",   "--data",   "synthetic:8x8x1:5:2500",
                       "--model", "mlp",      "--batch",
                       "16",      "--epochs", "2"};
  const std::string hint = "hint: after epoch 1 the network has learned nothing so far";
  for (const Words& way : {Words{}, Words{"--ranks", "3", "--strategy", "easgd"}}) {
    const Outcome told =
        Succeed(words + way + Words{"--lr", "1e-9", "--out", "a" + std::to_string(way.size())});
    const size_t at = (told.out + told.err).find(hint);
    ASSERT_NE(at, std::string::npos) << told.out << told.err;
    EXPECT_EQ((told.out + told.err).find("hint: ", at + 10), std::string::npos);
  }
  const Outcome good = Succeed(words + Words{"--out", "c"});
  EXPECT_EQ((good.out + good.err).find("hint: "), std::string::npos) << good.err;
}

TEST_F(TrainTest, WhatAnOptimizerDoesNotUseIsTold) {
  const std::string said = Succeed({"train", "--optimizer", "adam", "--set",
                                    "optimizer.nesterov=true", "--steps", "2", "--out", "a"})
                               .err;
  EXPECT_NE(said.find("adam does not use optimizer.nesterov"), said.npos) << said;
  EXPECT_NE(said.find("0.02 is high for adam"), said.npos) << said;
}

TEST_F(TrainTest, AFolderNamedLikeARecipeIsNotTakenForIt) {
  std::filesystem::create_directory(At("iris"));
  Succeed({"train", "--steps", "5", "--out", "iris/a"});
  Succeed({"train", "iris", "--steps", "5", "--out", "iris/b"});
  Refuse({"train", "./iris"}, 2, {"./iris", "directory"});
}

TEST_F(TrainTest, LinesOfStepsSayWhereTheirTimeWent) {
  Succeed({"train", "--ranks", "2", "--steps", "60", "--set", "trainer.metrics_steps=20", "--out",
           "a"});
  const std::string all = Read("a/metrics.jsonl");
  int lines = 0;
  for (const std::string& text : Split(all, '\n')) {
    if (text.find("\"event\":\"step\"") == text.npos) continue;
    ++lines;
    const Json line = ParseJson(text, "metrics.jsonl");
    EXPECT_GT(line.At("times").At("forward").AsDouble(), 0);
    EXPECT_LT(line.At("times").At("forward").AsDouble(), line.At("seconds").AsDouble());
    EXPECT_GT(line.At("bytes_sent").AsInt(), 0);
  }
  EXPECT_EQ(lines, 3);
}

// Evaluations take most of this run, and none of the time of its steps.
TEST_F(TrainTest, LinesOfStepsLeaveOutEvaluations) {
  Succeed({"train", "--data", "synthetic:8x8x1:5:2000", "--model", "mlp:64-32-5", "--set",
           "data.limit=50", "--batch", "10", "--epochs", "30", "--set", "trainer.metrics_steps=5",
           "--set", "trainer.checkpoint_epochs=0", "--out", "a"});
  double evaluating = 0, stepping = 0, first = -1, last = 0;
  for (const std::string& text : Split(std::string(Trim(Read("a/metrics.jsonl"))), '\n')) {
    const Json line = ParseJson(text, "metrics.jsonl");
    if (line.At("event").AsString() == "epoch") {
      evaluating += line.At("evaluation_seconds").AsDouble();
      continue;
    }
    last = line.At("time").AsDouble();
    if (first < 0) {
      first = last;  // its seconds are those of the start, too
    } else {
      stepping += line.At("seconds").AsDouble();
    }
  }
  EXPECT_LT(stepping, last - first + evaluating / 2);
}

TEST_F(TrainTest, TheStepsOfARunAreMeasuredWithoutItsData) {
  Succeed({"train", "--batch", "10", "--epochs", "3", "--quiet", "--out", "a"});
  const Words words = {"bench", "step", "--run", "a", "--repeat", "1", "--json"};
  const Json step = ParseJson(Succeed(words).out, "bench").Items().at(0);
  EXPECT_EQ(step.At("batch").AsInt(), 10);
  const double steps = step.At("trained_per_s").AsDouble() / 10;
  EXPECT_NEAR(step.At("share_of_step").AsDouble(), steps * 1e-3 * step.At("ms").AsDouble(), 1e-6);
  Refuse({"bench", "step"}, 2, {"MODEL is missing", "--run"});
  Refuse({"bench", "step", "--run", "a", "--batch", "3"}, 2, {"remove MODEL, --batch"});
}

TEST_F(TrainTest, TheConfigRepeatsTheRun) {
  Succeed({"train", "--out", "a", "--seed", "3", "--lr", "0.0123", "--optimizer", "adamw",
           "--ranks", "2", "--threads", "2", "--epochs", "7.3"});
  Succeed({"train", "a/config.toml", "--out", "b"});
  EXPECT_EQ(Hash("a"), Hash("b"));
  EXPECT_EQ(Read("a/config.toml"), Read("b/config.toml"));
}

TEST_F(TrainTest, TheConfigRepeatsARunWithABatchForEachWorker) {
  Succeed({"train", "--set", "trainer.batch_per_worker=6", "--ranks", "2", "--out", "a"});
  EXPECT_EQ(Number("a", "steps"), 1000);  // 120 samples, 2 * 6 a step
  Succeed({"train", "a/config.toml", "--out", "b"});
  EXPECT_EQ(Hash("a"), Hash("b"));
  Succeed({"train", "a/config.toml", "--batch", "30", "--steps", "3", "--out", "c"});
  EXPECT_NE(Read("c/config.toml").find("batch_per_worker = 0"), std::string::npos);
}

TEST_F(TrainTest, AnotherSeedIsAnotherRun) {
  Succeed({"train", "--steps", "5", "--out", "a"});
  Succeed({"train", "--steps", "5", "--out", "b", "--seed", "1"});
  EXPECT_NE(Hash("a"), Hash("b"));
}

TEST_F(TrainTest, WithoutOutTheRunHasAFolderOfItsOwn) {
  Succeed({"train", "--steps", "1"});
  Succeed({"train", "--steps", "1"});
  Refuse({"train", "--out", "runs"}, 2, {"runs", "not empty", "--out"});
}

TEST_F(TrainTest, BatchesOfAnySize) {
  struct Case {
    Words words;
    double steps;
  };
  const Case cases[] = {
      {{"--batch", "full"}, 3},
      {{"--batch", "1"}, 360},
      {{"--batch", "7"}, 54},
      {{"--batch", "100000"}, 3},
      {{"--batch", "full", "--ranks", "4"}, 3},
      {{"--batch", "1", "--ranks", "3"}, 360},
      {{"--set", "data.limit=10", "--batch", "4"}, 9},
      {{"--set", "data.limit=3", "--ranks", "7"}, 3},
      {{"--set", "trainer.shards=2", "--ranks", "5"}, 45},
      {{"--set", "trainer.accumulate=3", "--ranks", "2"}, 45},
      {{"--shuffle", "off"}, 45},
  };
  int number = 0;
  for (const Case& c : cases) {
    const std::string run = "r" + std::to_string(number++);
    Succeed(Words{"train", "--epochs", "3", "--out", run} + c.words);
    EXPECT_EQ(Number(run, "steps"), c.steps) << c.words[0] << c.words[1];
    EXPECT_EQ(Number(run, "epochs"), 3) << c.words[0] << c.words[1];
  }
}

TEST_F(TrainTest, HalfAnEpoch) {
  Succeed({"train", "--epochs", "0.5", "--out", "a"});
  EXPECT_EQ(Number("a", "steps"), 8);
  EXPECT_EQ(Number("a", "epochs"), 0);
  Succeed({"train", "--epochs", "1.5", "--out", "b"});
  EXPECT_EQ(Number("b", "steps"), 23);
  EXPECT_EQ(Number("b", "epochs"), 1);
}

TEST_F(TrainTest, EasgdLearnsIrisAndCountsEveryEpoch) {
  for (const std::string ranks : {"2", "3", "5"}) {
    Succeed({"train", "--ranks", ranks, "--strategy", "easgd", "--out", ranks});
    EXPECT_GT(Number(ranks, "test_accuracy"), 0.85);
    EXPECT_EQ(Number(ranks, "epochs"), 100);
    EXPECT_EQ(Number(ranks, "steps"), 1500);
    const auto epochs = Epochs(ranks);
    ASSERT_EQ(epochs.size(), 100u);
    for (size_t i = 0; i < epochs.size(); ++i) {
      EXPECT_EQ(epochs[i].At("epoch").AsInt(), int64_t(i + 1));
      EXPECT_EQ(epochs[i].At("step").AsInt(), int64_t(15 * (i + 1)));
    }
    EXPECT_NE(Latest(ranks).find("step-00001500"), std::string::npos);
  }
}

TEST_F(TrainTest, EasgdWithMoreWorkersThanWork) {
  // The rank that records may get nothing to do: the run counts all the same.
  Succeed({"train", "--ranks", "9", "--strategy", "easgd", "--set", "data.limit=5", "--epochs",
           "40", "--out", "a"});
  EXPECT_EQ(Number("a", "steps"), 40);
  EXPECT_EQ(Number("a", "epochs"), 40);
  const Json evaluated = ParseJson(Succeed({"eval", "a", "--json"}).out, "eval");
  EXPECT_NEAR(evaluated.At("test_loss").AsDouble(), Number("a", "test_loss"), 1e-6);
}

TEST_F(TrainTest, TellsTheStoryAsLinesOrJson) {
  EXPECT_EQ(Succeed({"train", "--quiet", "--epochs", "2", "--out", "q"}).err, "");
  const std::string text = Succeed({"train", "--json", "--epochs", "2", "--out", "j"}).out;
  int lines = 0;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    EXPECT_TRUE(ParseJson(text.substr(begin, end - begin), "line").IsObject());
    ++lines;
  }
  EXPECT_GE(lines, 2);
}

TEST_F(TrainTest, PeakMemoryIsItsOwnAndNotThatOfWhoStartedIt) {
  constexpr size_t kFat = size_t{700} << 20;
  const std::vector<char> fat(kFat, 1);
  Succeed({"train", "--epochs", "2", "--quiet", "--out", "a"});
  EXPECT_EQ(fat[kFat / 2], 1);
  EXPECT_GT(Number("a", "peak_memory_bytes"), 1e6);
  EXPECT_LT(Number("a", "peak_memory_bytes"), double(kFat));
}

TEST_F(TrainTest, APlanNeedsNoMemoryForTheWeights) {
  const Outcome plan = Succeed({"train", "--data", "synthetic:8192x8192x3:10:10", "--model", "mlp",
                                "--set", "data.normalize=none", "--batch", "1", "--dry-run"});
  EXPECT_NE(plan.out.find("total, without the program and the data set"), std::string::npos)
      << plan.out;
}

TEST_F(TrainTest, ADryRunLeavesNothing) {
  const Outcome plan = Succeed({"train", "fashion-cnn", "--data", "synthetic:28x28x1:10:100",
                                "--ranks", "2", "--dry-run", "--out", "a"});
  EXPECT_NE(plan.out.find("shards"), std::string::npos);
  EXPECT_FALSE(Exists(At("a")));
  EXPECT_FALSE(Exists(At("runs")));
}

}  // namespace
}  // namespace trireme::whole
