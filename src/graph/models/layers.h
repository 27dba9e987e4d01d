#pragma once
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "graph/models/options.h"

namespace trireme {

// What several model files use to turn options into operations. All throw UsageError, naming the
// key, for a word that is not an option.

ValueId AddActivation(Builder& build, const ModelOptions& options, ValueId x,
                      std::string_view name);
// `norm` is none, batch, layer or layer-plain; none adds nothing.
ValueId AddNorm(Builder& build, const std::string& norm, ValueId x, std::string_view name);
// Adds nothing when model.dropout is 0.
ValueId AddDropout(Builder& build, const ModelOptions& options, ValueId x, std::string_view name);
Graph FinishWithLoss(Builder build, const ModelOptions& options, ValueId logits);

// The option, or the model's own choice for "auto".
std::string NormOr(const ModelOptions& options, const std::string& choice);

// For models without sizes in their names and options that they cannot use.
void RefuseSizes(const ModelOptions& options, const std::string& sizes);
void RefuseStem(const ModelOptions& options);
void RefuseStochasticDepth(const ModelOptions& options);

}  // namespace trireme
