#include "trainer/defaults.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/files.h"
#include "base/text.h"
#include "data/sources.h"
#include "graph/models/models.h"
#include "graph/models/onnx_model.h"
#include "optimizer/rules.h"
#include "record/safetensors.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr double kFineTuning = 0.1;  // of the usual rate: given weights are near their goal
constexpr double kFineEpochs = 1. / 3;
constexpr double kWarmup = 0.1;             // of the run, and at most one epoch
constexpr double kTransformerDecay = 0.05;  // as DeiT's
constexpr double kFarAbove = 10;            // times the usual rate: a remark
constexpr double kEvaluations = 20;         // of a run whose number of epochs is chosen
constexpr double kCheckpoints = 4;          // likewise

// Tuned with scripts/compare-with-sklearn on tables of 320 to 16,000 training rows, seeds 10 to 12;
// docs/accuracy.md has seeds 0 to 2. The last two rows only continue the others.
constexpr char kTableOptimizer[] = "adamw";
constexpr double kTableRate = 0.003;
constexpr double kTableWarmup = 0.05;  // of the run
constexpr TableRule kTableRules[] = {
    {1'000, "64-32", 16, 200, 1},
    {10'000, "128-64", 32, 100, 1},
    {100'000, "128-64", 128, 50, 0.1},
    {1'000'000, "256-128", 512, 20, 0.1},
    {std::numeric_limits<int64_t>::max(), "256-128", 1024, 5, 0.1},
};

// docs/accuracy.md says what these recipes reach. The last row only continues the one before.
constexpr PictureRule kPictureRules[] = {
    {"small images", 3, std::numeric_limits<int64_t>::max(), "cifar10-resnet18", 30, nullptr},
    {"photos", 0, 20'000, "scenes-resnet18", 60, "crop-flip"},
    {"photos", 0, std::numeric_limits<int64_t>::max(), "scenes-resnet18", 30, "crop-flip"},
};
// Keys of these recipes that belong to their data, or depend on what else a command line says.
constexpr std::string_view kAdapted[] = {"data.source", "data.size", "trainer.batch",
                                         "trainer.epochs", "optimizer.lr"};

// The folder of the run that the weights belong to, or empty.
std::string RunOfWeights(const std::string& weights) {
  if (Exists(weights + "/config.toml")) return weights;
  const fs::path checkpoint = fs::path(weights).parent_path();
  const std::string run = (checkpoint / ".." / "..").lexically_normal().string();
  return Exists(checkpoint / "state.json") && Exists(run + "/config.toml") ? run : "";
}

const InputKind& KindOf(const SampleShape& shape) {
  return KindOf(Shape{shape.height, shape.width, shape.channels});
}

bool IsTable(const DataSet& data) { return KindOf(data.shape).table; }

double WarmupOf(const Recipe& recipe, const DataSet& data, const Plan& plan) {
  const double epochs = double(plan.steps) / double(plan.steps_per_epoch());
  const auto rounded = [](double value) { return std::round(1000 * value) / 1000; };
  if (IsTable(data) && recipe.optimizer.name == kTableOptimizer) {
    return rounded(kTableWarmup * epochs);
  }
  if (!FindModel(recipe.model.name).warms_up) return 0;
  const double most = recipe.optimizer.warmup_epochs;  // of the recipe that pictures follow
  return rounded(std::min(most > 0 ? most : 1.0, kWarmup * epochs));
}

// A key, or with a dot at the end one of a section.
bool IsGiven(const OpenKeys& open, std::string_view path) {
  return std::ranges::any_of(open.given, [&](const std::string& given) {
    return path.ends_with('.') ? given.starts_with(path) : given == path;
  });
}

// A number of epochs that was chosen: how often the run is evaluated and saved.
void FillOpenRhythm(const OpenKeys& open, TrainerOptions& trainer) {
  const auto every = [&](double times) { return std::max(1, int(trainer.epochs / times)); };
  if (open.evaluate) trainer.evaluate_every = every(kEvaluations);
  if (open.checkpoint) trainer.checkpoint_epochs = every(kCheckpoints);
}

// A key of another update rule, or one of a strategy, which may want a certain rule, is given.
bool WantsOtherRule(const Sections& sections) {
  for (const std::string& key : KeysOfOthers(FindRule(kTableOptimizer))) {
    if (sections.IsGiven("optimizer." + key)) return true;
  }
  return std::ranges::any_of(sections.Paths(), [&](const std::string& path) {
    return path.starts_with("strategy.") && sections.IsGiven(path);
  });
}

}  // namespace

std::span<const TableRule> TableRules() { return kTableRules; }

const TableRule& RuleFor(int64_t samples) {
  return *std::ranges::find_if(kTableRules,
                               [&](const TableRule& rule) { return samples < rule.below; });
}

std::span<const PictureRule> PictureRules() { return kPictureRules; }

const PictureRule* RuleFor(const SampleShape& shape, int64_t samples) {
  const std::string_view words = KindOf(shape).words;
  const auto found = std::ranges::find_if(kPictureRules, [&](const PictureRule& rule) {
    return rule.words == words && (rule.channels == 0 || rule.channels == shape.channels) &&
           samples < rule.below;
  });
  return found == std::end(kPictureRules) ? nullptr : &*found;
}

OpenKeys FindOpenKeys(const Sections& sections) {
  const bool judged =  // by evaluations, whose number counts
      sections.IsGiven("trainer.patience") || sections.IsGiven("trainer.target_accuracy") ||
      sections.At("optimizer.schedule").Toml() == "\"plateau\"";
  std::vector<std::string> given;
  for (const std::string& path : sections.Paths()) {
    if (sections.IsGiven(path)) given.push_back(path);
  }
  return {
      .no_recipe = true,
      .given = std::move(given),
      .size = !sections.IsGiven("data.size"),
      .centre = !sections.IsGiven("data.centre"),
      .model = !sections.IsGiven("model.name"),
      .rate = !sections.IsGiven("optimizer.lr"),
      .schedule = !sections.IsGiven("optimizer.schedule"),
      .warmup = !sections.IsGiven("optimizer.warmup_epochs"),
      .normalize = !sections.IsGiven("data.normalize"),
      .batch = !sections.IsGiven("trainer.batch") && !sections.IsGiven("trainer.batch_per_worker"),
      .epochs = !sections.IsGiven("trainer.epochs") && !sections.IsGiven("trainer.steps"),
      .evaluate = !judged && !sections.IsGiven("trainer.evaluate_every"),
      .checkpoint = !sections.IsGiven("trainer.checkpoint_epochs"),
      .optimizer = !sections.IsGiven("optimizer.name") && !WantsOtherRule(sections),
      .decay = !sections.IsGiven("optimizer.weight_decay")};
}

std::string FillOpenSize(const OpenKeys& open, bool given_weights, DataOptions& data) {
  const OwnSize own = open.size ? FindOwnSize(data) : OwnSize();
  if (own.side == 0 || (given_weights && !own.whole)) return "";
  data.size = own.side;
  if (!own.whole) return fmt::format("data.size {} for pictures of their size", own.side);
  if (open.centre) data.centre = 1;
  return fmt::format("small images at their own size (data.size {}, data.centre {:g})", own.side,
                     data.centre);
}

std::string FillOpenTable(const OpenKeys& open, const DataSet& data, Recipe& recipe) {
  if (!IsTable(data)) return "";
  std::vector<std::string> chosen;
  const TableRule& rule = RuleFor(data.train->size());
  TrainerOptions& trainer = recipe.trainer;
  OptimizerOptions& optimizer = recipe.optimizer;
  if (open.model) {
    recipe.model.name = fmt::format("mlp:*-{}-*", rule.hidden);
    chosen.push_back(recipe.model.name);
  }
  if (open.optimizer) {
    optimizer.name = kTableOptimizer;
    if (!open.rate) chosen.emplace_back(kTableOptimizer);  // else it is named with its rate
  }
  if (open.decay && optimizer.name == kTableOptimizer) optimizer.weight_decay = rule.decay;
  if (FindRule(optimizer.name).whole) return fmt::format("{}", fmt::join(chosen, ", "));
  if (open.batch) {
    trainer.batch = std::min(rule.batch, data.train->size());
    chosen.push_back(fmt::format("batch {}", trainer.batch.number));
  }
  if (open.epochs) {
    trainer.epochs = rule.epochs;
    FillOpenRhythm(open, trainer);
    chosen.push_back(fmt::format("{:g} epochs", trainer.epochs));
  }
  if (!chosen.empty()) {
    chosen.back() += fmt::format(" for a table of {} rows", FormatCount(data.train->size()));
  }
  return fmt::format("{}", fmt::join(chosen, ", "));
}

std::string FillOpenPictures(OpenKeys& open, const DataSet& data, Recipe& recipe) {
  const PictureRule* const rule = RuleFor(data.shape, data.train->size());
  if (!open.no_recipe || rule == nullptr || !data.train->has_bytes()) return "";
  // The settings are those of deep convolutions, and of steps with changing pictures.
  if (!open.model) {
    const ModelDef& model = FindModel(recipe.model.name);
    if (!model.warms_up || model.optimizer) return "";
  }
  if (FindRule(recipe.optimizer.name).whole) return "";
  TrainerOptions& trainer = recipe.trainer;
  OptimizerOptions& optimizer = recipe.optimizer;
  const RecipeEntries source = ReadRecipe(rule->recipe);
  Recipe followed;
  Sections complete;
  Bind(complete, followed);
  complete.Load(source.entries, source.file);
  const bool rates =
      (!IsGiven(open, "optimizer.name") || optimizer.name == followed.optimizer.name) &&
      !IsGiven(open, "strategy.");
  std::vector<TomlEntry> entries = source.entries;
  std::erase_if(entries, [&](const TomlEntry& entry) {
    const std::string path = entry.section + "." + entry.key;
    return std::ranges::find(kAdapted, path) != std::end(kAdapted) || IsGiven(open, path) ||
           (entry.section == "optimizer" && !rates);
  });
  Sections sections;
  Bind(sections, recipe);
  sections.Load(entries, source.file);
  if (rule->uncut && !data.train->cuts() && !IsGiven(open, "data.augment")) {
    recipe.data.augment = rule->uncut;
  }
  std::vector<std::string> chosen = {fmt::format("as recipe {} for {} {}", rule->recipe,
                                                 FormatCount(data.train->size()), rule->words)};
  open.model = false;
  chosen.push_back(recipe.model.name);
  if (recipe.data.augment != DataOptions().augment) chosen.push_back(recipe.data.augment);
  if (open.batch) {
    trainer.batch = std::min(followed.trainer.batch.number, data.train->size());
    chosen.push_back(fmt::format("batch {}", trainer.batch.number));
  }
  if (open.epochs) {
    trainer.epochs = trainer.init.empty() ? rule->epochs : std::round(kFineEpochs * rule->epochs);
    FillOpenRhythm(open, trainer);
    chosen.push_back(fmt::format("{:g} epochs", trainer.epochs));
  }
  if (rates && open.rate) {
    optimizer.lr = followed.optimizer.lr * UsualRate(optimizer) / UsualRate(followed.optimizer) *
                   (trainer.init.empty() ? 1 : kFineTuning);
    open.rate = false;
    chosen.push_back(fmt::format("{} at {:g}", optimizer.name, optimizer.lr));
  }
  return fmt::format("{}", fmt::join(chosen, ", "));
}

std::string FillOpenKeys(const OpenKeys& open, const DataSet& data, const Plan& plan,
                         Recipe& recipe) {
  std::vector<std::string> chosen;
  const std::string& init = recipe.trainer.init;
  OptimizerOptions& optimizer = recipe.optimizer;
  if (open.model && !IsTable(data)) {
    const InputKind& kind = KindOf(data.shape);
    recipe.model.name = kind.model;
    chosen.push_back(fmt::format("{} for {}", kind.model, kind.words));
  }
  if (open.normalize && !init.empty()) {
    const std::string wanted = NormalizationOfWeights(init, recipe.model.name);
    if (!wanted.empty() && wanted != recipe.data.normalize) {
      recipe.data.normalize = wanted;
      chosen.push_back(fmt::format("data.normalize {} for these weights", wanted));
    }
  }
  if (const char* const wanted = FindModel(recipe.model.name).optimizer;
      wanted && open.optimizer && optimizer.name != wanted) {
    optimizer.name = wanted;
    if (open.decay) optimizer.weight_decay = kTransformerDecay;
    if (!open.rate) chosen.emplace_back(wanted);
  }
  const bool steps = !FindRule(optimizer.name).whole;
  if (open.rate && !steps) chosen.push_back(optimizer.name);
  if (open.rate && steps) {
    const bool table = IsTable(data) && optimizer.name == kTableOptimizer;
    optimizer.lr = (table ? kTableRate : UsualRate(optimizer)) * (init.empty() ? 1 : kFineTuning);
    chosen.push_back(fmt::format("{} at {:g}", optimizer.name, optimizer.lr));
    if (table && open.decay) {
      chosen.back() += fmt::format(" with a weight decay of {:g}", optimizer.weight_decay);
    }
  }
  if (open.schedule && steps) {
    optimizer.schedule = "cosine";
    chosen.emplace_back("cosine");
  }
  if (open.warmup && steps) {
    optimizer.warmup_epochs = WarmupOf(recipe, data, plan);
    if (optimizer.warmup_epochs > 0) {
      chosen.push_back(fmt::format("warm-up of {:g} epochs", optimizer.warmup_epochs));
    }
  }
  return fmt::format("{}", fmt::join(chosen, ", "));
}

std::string NormalizationOfWeights(const std::string& file, const std::string& model) {
  if (const std::string run = RunOfWeights(file); !run.empty()) {
    Recipe recipe;
    Sections sections;
    Bind(sections, recipe);
    LoadRunRecipe(sections, run);
    // Numbers that were given belong to its data; which they were, only data.mean can say.
    return recipe.data.normalize == "given" ? "" : recipe.data.normalize;
  }
  if (!model.starts_with("resnet") || file.starts_with(kOnnxPrefix)) return "";
  const SafetensorsReader reader(file);
  for (const TensorInfo& tensor : reader.tensors()) {
    if (tensor.name.ends_with("num_batches_tracked")) return "imagenet";
  }
  return "";
}

std::vector<std::string> OptimizerRemarks(const Sections& sections,
                                          const OptimizerOptions& optimizer) {
  std::vector<std::string> remarks;
  const RuleDef& rule = FindRule(optimizer.name);
  if (rule.whole) {
    std::vector<std::string> unused(KeysOfSteps().begin(), KeysOfSteps().end());
    for (const std::string& key : KeysOfOthers(rule)) unused.push_back("optimizer." + key);
    std::erase_if(unused, [&](const std::string& path) {
      return !sections.IsGiven(path) || !sections.IsChanged(path);
    });
    if (unused.empty()) return {};
    return {
        fmt::format("{} takes one step per epoch, with the gradient of all samples; it does not "
                    "use {}",
                    rule.name, fmt::join(unused, ", "))};
  }
  for (const std::string& key : KeysOfOthers(rule)) {
    const std::string path = "optimizer." + key;
    if (!sections.ByHand(path)) continue;
    remarks.push_back(
        fmt::format("{} does not use {} ({})", optimizer.name, path, sections.Where(path)));
  }
  const double usual = UsualRate(optimizer);
  if (sections.ByHand("optimizer.name") && !sections.ByHand("optimizer.lr") &&
      optimizer.lr > kFarAbove * usual) {
    remarks.push_back(fmt::format(
        "the recipe's optimizer.lr {:g} is high for {}, whose usual rate is {:g}; set --lr",
        optimizer.lr, optimizer.name, usual));
  }
  if (!sections.IsGiven("optimizer.name") && optimizer.name == kTableOptimizer &&
      sections.ByHand("optimizer.lr") && optimizer.lr > kFarAbove * kTableRate) {
    remarks.push_back(fmt::format(
        "optimizer.lr {:g} is high for {}, which is chosen for tables and whose rate there is "
        "{:g}; set another --lr, or --optimizer sgd",
        optimizer.lr, optimizer.name, kTableRate));
  }
  return remarks;
}

}  // namespace trireme
