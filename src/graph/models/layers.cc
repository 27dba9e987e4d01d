#include "graph/models/layers.h"

#include "base/error.h"
#include "graph/models/activations.h"
#include "graph/models/losses.h"

namespace trireme {

ValueId AddActivation(Builder& build, const ModelOptions& options, ValueId x,
                      std::string_view name) {
  return build.Add(FindActivation(options.activation).name, {x}, {}, name);
}

std::string NormOr(const ModelOptions& options, const std::string& choice) {
  return options.norm == "auto" ? choice : options.norm;
}

ValueId AddNorm(Builder& build, const std::string& norm, ValueId x, std::string_view name) {
  if (norm == "none") return x;
  if (norm == "batch") return build.Add("batch_norm", {x}, {}, name);
  if (norm == "layer") return build.Add("layer_norm", {x}, {}, name);
  if (norm == "layer-plain") return build.Add("layer_norm", {x}, {.affine = false}, name);
  throw UsageError("model.norm must be auto, none, batch, layer or layer-plain, got \"{}\"", norm);
}

ValueId AddDropout(Builder& build, const ModelOptions& options, ValueId x, std::string_view name) {
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    throw UsageError("model.dropout must be at least 0 and below 1, got {}", options.dropout);
  }
  if (options.dropout == 0) return x;
  return build.Add("dropout", {x}, {.rate = float(options.dropout)}, name);
}

Graph FinishWithLoss(Builder build, const ModelOptions& options, ValueId logits) {
  if (!(options.smoothing >= 0 && options.smoothing < 1)) {
    throw UsageError("model.smoothing must be at least 0 and below 1, got {}", options.smoothing);
  }
  const LossKind& loss = LossFor(options.loss, build.shape(logits).channels);
  if (options.smoothing > 0 && !loss.smooths) {
    throw UsageError("model.smoothing = {} needs model.loss = \"cross-entropy\"",
                     options.smoothing);
  }
  return std::move(build).Finish(loss.op, logits, options.smoothing);
}

void RefuseSizes(const ModelOptions& options, const std::string& sizes) {
  if (sizes.empty()) return;
  throw UsageError("model.name \"{}\": only mlp takes sizes after a colon", options.name);
}

void RefuseStem(const ModelOptions& options) {
  if (options.stem == "auto") return;
  throw UsageError("model.stem = \"{}\" needs a resnet; {} has no stem", options.stem,
                   options.name);
}

void RefuseStochasticDepth(const ModelOptions& options) {
  if (options.stochastic_depth == 0) return;
  throw UsageError("model.stochastic_depth = {} needs a vit; {} has none", options.stochastic_depth,
                   options.name);
}

}  // namespace trireme
