#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "flat/layout.h"
#include "graph/graph.h"

namespace trireme {

// Parameters in the order in which backward finishes them: the last layer's first.
Layout LayOut(const Graph& graph);

// Buckets of at least `floats` gradients each (the last of the weights may be smaller), then the
// tail. A function of layout and size alone: ranks agree whatever their engines.
std::vector<Bucket> CutBuckets(const Layout& layout, size_t floats);

// Initial weights and statistics: a function of graph and seed.
std::vector<float> InitialState(const Graph& graph, const Layout& layout, uint64_t seed);

// Between the order in memory and the order in files. `memory` and `file` have spec.size() floats.
void ToFile(const ParameterSpec& spec, std::span<const float> memory, std::span<float> file);
void FromFile(const ParameterSpec& spec, std::span<const float> file, std::span<float> memory);
std::vector<int64_t> FileShape(const ParameterSpec& spec);

}  // namespace trireme
