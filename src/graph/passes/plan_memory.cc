// Values become storages (views and in-place results share one); storages whose lives do not
// overlap share addresses. Largest first, each at the lowest address where it fits (Pisarchyk and
// Lee 2020, "greedy by size"): within a few percent of the lower bound on networks like these.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "base/assert.h"
#include "graph/engine.h"
#include "graph/op.h"
#include "graph/passes/passes.h"

namespace trireme::passes {
namespace {

struct Storage {
  size_t bytes = 0;
  int born = 0, dies = 0;  // node indices, both inclusive
  bool is_input = false;
  size_t offset = 0;
  bool Overlaps(const Storage& other) const { return born <= other.dies && other.born <= dies; }
};

std::vector<int> LastReads(const Graph& graph, int capacity, std::span<const ValueId> results,
                           const Engine& engine) {
  std::vector<int> last(graph.values.size(), -1);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const int until = int(i) + engine.Lingers(graph, graph.nodes[i], capacity);
    for (const ValueId input : graph.nodes[i].inputs) last[input] = std::max(last[input], until);
  }
  for (const ValueId value : results) last[value] = int(graph.nodes.size());
  return last;
}

// Which storage each value lives in.
class Assignment {
 public:
  Assignment(const Graph& graph, int capacity, std::span<const ValueId> results,
             const Engine& engine)
      : graph_(graph),
        capacity_(capacity),
        last_reads_(LastReads(graph, capacity, results, engine)) {
    storage_of_.assign(graph.values.size(), -1);
    Open(0, -1);
    storages[0].is_input = true;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        const int shared = k == 0 ? Shared(node, int(i)) : -1;
        if (shared < 0) {
          Open(node.outputs[k], int(i));
        } else {
          Join(node.outputs[k], shared, int(i));
        }
      }
    }
  }

  std::vector<Storage> storages;
  int num_in_place = 0;
  const std::vector<int>& storage_of() const { return storage_of_; }

 private:
  void Open(ValueId value, int node) {
    storage_of_[value] = int(storages.size());
    storages.push_back({.bytes = size_t(graph_.values[value].bytes(capacity_)),
                        .born = node,
                        .dies = std::max(node, last_reads_[value])});
  }
  void Join(ValueId value, int storage, int node) {
    storage_of_[value] = storage;
    storages[storage].dies = std::max({storages[storage].dies, node, last_reads_[value]});
  }
  // The storage that output 0 of `node` takes over, or -1.
  int Shared(const Node& node, int index) {
    if (node.op->view) return storage_of_[node.inputs[0]];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (!(node.op->in_place >> k & 1)) continue;
      const int storage = storage_of_[node.inputs[k]];
      if (storages[storage].is_input || storages[storage].dies != index) continue;
      if (storages[storage].bytes != size_t(graph_.values[node.outputs[0]].bytes(capacity_))) {
        continue;
      }
      ++num_in_place;
      return storage;
    }
    return -1;
  }

  const Graph& graph_;
  const int capacity_;
  const std::vector<int> last_reads_;
  std::vector<int> storage_of_;
};

size_t PlaceAll(std::vector<Storage>& storages, size_t alignment) {
  std::vector<int> order(storages.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return storages[a].bytes > storages[b].bytes; });
  std::vector<const Storage*> placed;  // by offset
  size_t total = 0;
  for (const int i : order) {
    Storage& storage = storages[i];
    if (storage.is_input) continue;
    size_t offset = 0;
    for (const Storage* other : placed) {
      if (!other->Overlaps(storage)) continue;
      if (other->offset >= offset + storage.bytes) break;
      const size_t end = other->offset + other->bytes;
      offset = std::max(offset, (end + alignment - 1) / alignment * alignment);
    }
    storage.offset = offset;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), &storage,
                                   [](auto* a, auto* b) { return a->offset < b->offset; }),
                  &storage);
    total = std::max(total, offset + storage.bytes);
  }
  return total;
}

}  // namespace

MemoryPlan PlanMemory(const Graph& graph, int capacity, std::span<const ValueId> results,
                      const Engine& engine) {
  Assignment assignment(graph, capacity, results, engine);
  MemoryPlan plan;
  plan.bytes = PlaceAll(assignment.storages, engine.alignment());
  size_t all = 0;
  for (const Storage& storage : assignment.storages) all += storage.is_input ? 0 : storage.bytes;
  for (const int index : assignment.storage_of()) {
    // A value that a pass removed has no storage.
    plan.is_input.push_back(index >= 0 && assignment.storages[index].is_input);
    plan.offsets.push_back(index >= 0 ? assignment.storages[index].offset : 0);
  }
  plan.decision = fmt::format("memory: {} storages of {:.1f} MB in {:.1f} MB, {} results in place",
                              assignment.storages.size() - 1, all * 1e-6, plan.bytes * 1e-6,
                              assignment.num_in_place);
  return plan;
}

}  // namespace trireme::passes
