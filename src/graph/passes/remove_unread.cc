#include <fmt/core.h>

#include <algorithm>

#include "graph/op.h"
#include "graph/passes/passes.h"

namespace trireme::passes {

std::vector<int> CountReaders(const Graph& graph) {
  std::vector<int> readers(graph.values.size());
  for (const Node& node : graph.nodes) {
    for (const ValueId input : node.inputs) ++readers[input];
  }
  return readers;
}

std::string RemoveUnread(Graph& graph) {
  std::vector<int> readers = CountReaders(graph);
  int removed = 0;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const bool read = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](ValueId value) { return readers[value] > 0; });
    // Forward operations stay: their outputs are results, or they write statistics.
    if (!node.backward || node.op->writes_gradients || read) continue;
    for (const ValueId input : node.inputs) --readers[input];
    graph.nodes.erase(graph.nodes.begin() + i);
    ++removed;
  }
  return fmt::format("unread: {} operations removed", removed);
}

}  // namespace trireme::passes
