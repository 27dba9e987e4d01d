#include "graph/models/layer_names.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/text.h"

namespace trireme {
namespace {

void AddOnce(std::vector<std::string>& names, std::string name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
}

// Layers with parameters, and the groups in which they stand.
std::vector<std::string> NamesOf(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    if (node.parameters.empty()) continue;
    for (size_t dot = node.name.find('.'); dot != std::string::npos;
         dot = node.name.find('.', dot + 1)) {
      AddOnce(names, node.name.substr(0, dot));
    }
    AddOnce(names, node.name);
  }
  return names;
}

}  // namespace

bool IsWithin(std::string_view layer, std::string_view name) {
  return layer == name || (layer.starts_with(name) && layer[name.size()] == '.');
}

std::string LikelyLayers(const Graph& graph, const std::string& name) {
  constexpr size_t kMost = 5;
  std::vector<std::string> names = NamesOf(graph);
  if (Nearest(name, names)) {
    std::ranges::stable_sort(names, {},
                             [&](const std::string& other) { return EditDistance(name, other); });
    names.resize(std::min(names.size(), kMost));
  } else {
    std::erase_if(names, [](const std::string& other) { return other.find('.') != other.npos; });
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace trireme
