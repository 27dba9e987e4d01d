#include "graph/models/freeze.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "graph/models/layer_names.h"

namespace trireme {
namespace {

constexpr std::string_view kUpTo = "up to ";

}  // namespace

void Freeze(Graph& graph, const std::string& freeze) {
  const std::string name(freeze.starts_with(kUpTo) ? Trim(freeze.substr(kUpTo.size())) : "");
  if (name.empty()) {
    throw UsageError("model.freeze = \"{}\": expected \"up to NAME\", where NAME is a layer",
                     freeze);
  }
  size_t end = 0;  // behind the last that is frozen
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (IsWithin(graph.nodes[i].name, name)) end = i + 1;
  }
  if (end == 0) {
    throw UsageError("model.freeze = \"{}\": the network has no layer \"{}\"; it has {}", freeze,
                     name, LikelyLayers(graph, name));
  }
  const auto holds = [](const Node& node) { return !node.parameters.empty(); };
  const auto border = graph.nodes.begin() + std::ptrdiff_t(end);
  if (std::none_of(graph.nodes.begin(), border, holds)) {
    throw UsageError(
        "model.freeze = \"{}\": no layer up to there has weights; name a later one, or leave the "
        "key "
        "out",
        freeze);
  }
  if (std::none_of(border, graph.nodes.end(), holds)) {
    throw UsageError("model.freeze = \"{}\" leaves nothing to train; name an earlier layer",
                     freeze);
  }
  std::for_each(graph.nodes.begin(), border, [](Node& node) { node.frozen = true; });
}

}  // namespace trireme
