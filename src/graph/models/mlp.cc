#include "graph/models/mlp.h"

#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "graph/models/activations.h"
#include "graph/models/layers.h"
#include "graph/models/losses.h"

namespace trireme {
namespace {

constexpr int kLargestLayer = 1 << 20;

// Stands for the data's own size at either end; 0 in the list.
constexpr char kOwnSize[] = "*";

std::vector<int> ParseSizes(const ModelOptions& options, const std::string& text) {
  const std::vector<std::string> words = Split(text, '-');
  std::vector<int> sizes;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool own = words[i] == kOwnSize && (i == 0 || i + 1 == words.size());
    const auto size = own ? 0 : ParseNumber<int>(words[i]);
    if (!own && (!size || *size < 1 || *size > kLargestLayer)) {
      throw UsageError(
          "model.name \"{}\": sizes must be numbers from 1 to {}, joined by -, as in "
          "mlp:784-200-10 (the first and the last may be *: as the data)",
          options.name, kLargestLayer);
    }
    sizes.push_back(*size);
  }
  return sizes;
}

// Input, hidden layers, classes.
std::vector<int> LayerSizes(const ModelOptions& options, const std::string& text, Shape input,
                            int classes) {
  if (text.empty()) return {int(input.size()), 200, classes};
  std::vector<int> sizes = ParseSizes(options, text);
  if (sizes.front() == 0) sizes.front() = int(input.size());
  if (sizes.back() == 0) sizes.back() = classes;
  if (sizes.size() < 2 || sizes.front() != input.size() || sizes.back() != classes) {
    throw UsageError(
        "model.name \"{}\": the first size must be that of the input, {} ({}), and the last the "
        "number of classes (1 for a number), {}; --model mlp takes both from the data",
        options.name, input.size(), ToText(input), classes);
  }
  return sizes;
}

}  // namespace

Graph BuildMlp(const ModelOptions& options, const std::string& text, Shape input, int classes) {
  RefuseStem(options);
  RefuseStochasticDepth(options);
  const std::vector<int> sizes = LayerSizes(options, text, input, classes);
  const std::string norm = NormOr(options, "none");
  if (sizes.size() == 2 && (options.norm != "auto" || options.dropout != 0)) {
    throw UsageError("model.norm and model.dropout need a hidden layer; {} has none", options.name);
  }

  Builder build(input);
  ValueId x = build.input();
  if (input.height != 1 || input.width != 1) x = build.Add("flatten", {x}, {}, "flatten");
  int module = 0;
  auto next = [&] { return fmt::format("layers.{}", module++); };
  for (size_t i = 1; i + 1 < sizes.size(); ++i) {
    // A batch-norm takes every constant off again.
    x = build.Add("dense", {x}, {.channels = sizes[i], .bias = norm != "batch"}, next());
    if (norm != "none") x = AddNorm(build, norm, x, next());
    x = AddActivation(build, options, x, next());
    if (options.dropout != 0) x = AddDropout(build, options, x, next());
  }
  x = build.Add("dense", {x}, {.channels = sizes.back()}, next());
  if (sizes.back() > 1 && LossFor(options.loss, sizes.back()).compares_outputs &&
      FindActivation(options.activation).follows_output) {
    x = AddActivation(build, options, x, next());
  }
  return FinishWithLoss(std::move(build), options, x);
}

}  // namespace trireme
