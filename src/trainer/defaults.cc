#include "trainer/defaults.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/files.h"
#include "data/sources.h"
#include "graph/models/models.h"
#include "optimizer/rules.h"
#include "record/safetensors.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr double kFineTuning = 0.1;  // of the usual rate: given weights are near their goal
constexpr double kWarmup = 0.1;      // of the run, and at most one epoch
constexpr double kFarAbove = 10;     // times the usual rate: a remark

// The folder of the run that the weights belong to, or empty.
std::string RunOfWeights(const std::string& weights) {
  if (Exists(weights + "/config.toml")) return weights;
  const fs::path checkpoint = fs::path(weights).parent_path();
  const std::string run = (checkpoint / ".." / "..").lexically_normal().string();
  return Exists(checkpoint / "state.json") && Exists(run + "/config.toml") ? run : "";
}

double WarmupOf(const Recipe& recipe, const Plan& plan) {
  if (!FindModel(recipe.model.name).warms_up) return 0;
  const double epochs = double(plan.steps) / double(plan.steps_per_epoch());
  return std::round(1000 * std::min(1.0, kWarmup * epochs)) / 1000;
}

}  // namespace

OpenKeys FindOpenKeys(const Sections& sections) {
  return {.size = !sections.IsGiven("data.size"),
          .centre = !sections.IsGiven("data.centre"),
          .model = !sections.IsGiven("model.name"),
          .rate = !sections.IsGiven("optimizer.lr"),
          .schedule = !sections.IsGiven("optimizer.schedule"),
          .warmup = !sections.IsGiven("optimizer.warmup_epochs"),
          .normalize = !sections.IsGiven("data.normalize")};
}

std::string FillOpenSize(const OpenKeys& open, DataOptions& data) {
  const int side = open.size ? FindOwnSize(data) : 0;
  if (side == 0) return "";
  data.size = side;
  if (open.centre) data.centre = 1;
  return fmt::format("small images at their own size (data.size {}, data.centre {:g})", side,
                     data.centre);
}

std::string FillOpenKeys(const OpenKeys& open, const DataSet& data, const Plan& plan,
                         Recipe& recipe) {
  std::vector<std::string> chosen;
  const std::string& init = recipe.trainer.init;
  OptimizerOptions& optimizer = recipe.optimizer;
  if (open.model) {
    const InputKind& kind = KindOf({data.shape.height, data.shape.width, data.shape.channels});
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
  const bool steps = !FindRule(optimizer.name).whole;
  if (open.rate && !steps) chosen.push_back(optimizer.name);
  if (open.rate && steps) {
    optimizer.lr = UsualRate(optimizer) * (init.empty() ? 1 : kFineTuning);
    chosen.push_back(fmt::format("{} at {:g}", optimizer.name, optimizer.lr));
  }
  if (open.schedule && steps) {
    optimizer.schedule = "cosine";
    chosen.emplace_back("cosine");
  }
  if (open.warmup && steps) {
    optimizer.warmup_epochs = WarmupOf(recipe, plan);
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
  if (!model.starts_with("resnet")) return "";
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
  return remarks;
}

}  // namespace trireme
