#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string_view>

#include "base/assert.h"
#include "base/error.h"
#include "graph/op.h"
#include "graph/passes/passes.h"

namespace trireme::passes {
namespace {

using Values = std::span<const ValueId>;

bool Holds(Values values, ValueId value) { return std::ranges::count(values, value) > 0; }

// The one node that reads `value`, if it does so once.
std::optional<size_t> OnlyReader(const Graph& graph, ValueId value) {
  std::optional<size_t> found;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto times = std::ranges::count(graph.nodes[i].inputs, value);
    if (times == 0) continue;
    if (times > 1 || found) return {};
    found = i;
  }
  return found;
}

// The first node that reads `value`, if it does so once.
std::optional<size_t> FirstReader(const Graph& graph, ValueId value) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto times = std::ranges::count(graph.nodes[i].inputs, value);
    if (times > 0) return times == 1 ? std::optional(i) : std::nullopt;
  }
  return {};
}

// The chain of the parts of `fused` that begins with a node; empty: there is none.
std::vector<size_t> FindChain(const Graph& graph, const OpDef& fused, size_t first,
                              Values results) {
  TRIREME_ASSERT(fused.parts.size() > 1);
  std::vector<size_t> chain;
  std::optional<size_t> next = first;
  for (const char* part : fused.parts) {
    if (!next) return {};
    const Node& node = graph.nodes[*next];
    if (std::string_view(node.op->name) != part) return {};
    if (node.backward != graph.nodes[first].backward) return {};
    if (node.frozen && fused.gradient) return {};  // it has none, but the rest may
    chain.push_back(*next);
    if (chain.size() == fused.parts.size()) break;
    if (node.outputs.empty() || Holds(results, node.outputs[0])) return {};
    const bool kept = int(chain.size()) - 1 == fused.keeps;
    next = kept ? FirstReader(graph, node.outputs[0]) : OnlyReader(graph, node.outputs[0]);
  }
  // The joined node stands where the last one stood: all inputs are there by then, and what the
  // others make beside their results must not be read before.
  for (size_t i = first; i <= chain.back(); ++i) {
    for (const size_t made : std::span(chain).first(chain.size() - 1)) {
      for (const ValueId value : std::span(graph.nodes[made].outputs).subspan(1)) {
        if (Holds(graph.nodes[i].inputs, value)) return {};
      }
    }
  }
  return chain;
}

// Joins the chain that begins with a node, if there is one and the engine wants it.
bool FuseAt(Graph& graph, const Fusion& fusion, size_t first, int capacity, Values results) {
  const std::vector<size_t> chain = FindChain(graph, *fusion.op, first, results);
  if (chain.empty()) return false;
  std::vector<const Node*> nodes(chain.size());
  std::ranges::transform(chain, nodes.begin(), [&](size_t i) { return &graph.nodes[i]; });
  if (fusion.worth && !fusion.worth(graph, nodes, capacity)) return false;
  std::vector<Node> parts(chain.size());
  std::ranges::transform(chain, parts.begin(), [&](size_t i) { return std::move(graph.nodes[i]); });
  graph.nodes[chain.back()] = Join(*fusion.op, std::move(parts));
  for (size_t k = chain.size() - 1; k-- > 0;) {
    graph.nodes.erase(graph.nodes.begin() + std::ptrdiff_t(chain[k]));
  }
  return true;
}

// The engine's, those of more parts first.
std::vector<Fusion> LongestFirst(std::span<const Fusion> fusions) {
  std::vector<Fusion> sorted(fusions.begin(), fusions.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(),
                           [](const Fusion& fusion) { return fusion.op->parts.size(); });
  return sorted;
}

// What became one, as text; empty: nothing.
template <class Takes>
std::string FuseAll(Graph& graph, const Engine& engine, int capacity, Values results,
                    const Takes& takes) {
  std::map<std::string, int> counts;
  for (const Fusion& fusion : LongestFirst(engine.fusions())) {
    if (!takes(fusion)) continue;
    for (size_t i = 0; i < graph.nodes.size();) {
      if (FuseAt(graph, fusion, i, capacity, results)) {
        ++counts[fusion.op->name];  // and the next node stands here
      } else {
        ++i;
      }
    }
  }
  std::string text;
  for (const auto& [name, count] : counts) text += fmt::format(" {} x {}", count, name);
  return text;
}

}  // namespace

Node Join(const OpDef& fused, std::vector<Node> parts) {
  const Node& first = parts.front();
  Node node{.op = &fused,
            .name = first.name,
            .attributes = first.attributes,
            .outputs = parts.back().outputs,
            .backward = first.backward,
            .frozen = parts.back().frozen};
  const auto append = [](auto& to, const auto& from, size_t skip) {
    to.insert(to.end(), from.begin() + std::ptrdiff_t(skip), from.end());
  };
  const Node* before = nullptr;
  for (const Node& part : parts) {
    for (const ValueId input : part.inputs) {
      if (!before || input != before->outputs[0]) node.inputs.push_back(input);
    }
    if (&part != &parts.back()) append(node.outputs, part.outputs, 1);
    append(node.parameters, part.parameters, 0);
    append(node.statistics, part.statistics, 0);
    before = &part;
  }
  if (fused.keeps >= 0) node.outputs.push_back(parts[size_t(fused.keeps)].outputs[0]);
  TRIREME_ASSERT(parts.size() == fused.parts.size());
  TRIREME_ASSERT(node.inputs.size() == fused.inputs.size());
  TRIREME_ASSERT(node.outputs.size() == fused.outputs.size());
  node.parts = std::move(parts);
  return node;
}

std::string FuseWithGradient(Graph& graph, const Engine& engine, int capacity) {
  std::vector<ValueId> tallied = graph.loss().outputs;
  tallied.push_back(graph.logits());
  const std::string made = FuseAll(graph, engine, capacity, tallied, [](const Fusion& fusion) {
    return fusion.op->gradient != nullptr;
  });
  return made.empty() ? "" : "fusion before backward:" + made;
}

std::string Fuse(Graph& graph, const Engine& engine, int capacity, Values results) {
  const std::string made =
      FuseAll(graph, engine, capacity, results, [](const Fusion&) { return true; });
  return "fusion:" + (made.empty() ? " none" : made);
}

void CheckKernels(const Graph& graph, const Engine& engine) {
  for (const Node& node : graph.nodes) {
    if (node.op->view || engine.Computes(node.op->name)) continue;
    throw Error(
        "engine {}: no kernel for operation {} (layer {}); use another --device, cpu has all",
        engine.name(), node.op->name, node.name);
  }
}

}  // namespace trireme::passes
