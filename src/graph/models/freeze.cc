#include "graph/models/freeze.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace trireme {
namespace {

constexpr std::string_view kUpTo = "up to ";

bool BelongsTo(const Node& node, std::string_view name) {
  const std::string_view own = node.name;
  return own == name || (own.starts_with(name) && own[name.size()] == '.');
}

void AddOnce(std::vector<std::string>& names, std::string name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
}

// What may be named: layers with parameters, and the groups in which they stand.
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

// Those that are most like `name`, or else the outermost.
std::vector<std::string> LikelyNames(const Graph& graph, const std::string& name) {
  constexpr size_t kMost = 5;
  std::vector<std::string> names = NamesOf(graph);
  if (Nearest(name, names)) {
    std::ranges::stable_sort(names, {},
                             [&](const std::string& other) { return EditDistance(name, other); });
    names.resize(std::min(names.size(), kMost));
  } else {
    std::erase_if(names, [](const std::string& other) { return other.find('.') != other.npos; });
  }
  return names;
}

}  // namespace

void Freeze(Graph& graph, const std::string& freeze) {
  const std::string name(freeze.starts_with(kUpTo) ? Trim(freeze.substr(kUpTo.size())) : "");
  if (name.empty()) {
    throw UsageError("model.freeze = \"{}\": expected \"up to NAME\", where NAME is a layer",
                     freeze);
  }
  size_t end = 0;  // behind the last that is frozen
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (BelongsTo(graph.nodes[i], name)) end = i + 1;
  }
  if (end == 0) {
    throw UsageError("model.freeze = \"{}\": the network has no layer \"{}\"; it has {}", freeze,
                     name, fmt::join(LikelyNames(graph, name), ", "));
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
