#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace trireme {

// A stretch of a flat slice, in floats.
struct Range {
  size_t begin = 0;
  size_t size = 0;
  size_t end() const { return begin + size; }
};

// Where each parameter and statistic lies in the flat slices. A function of the graph alone, so
// servers without an engine and engines of different kinds agree on it (graph/layout.h makes it).
//
//   state   = weights (in the order in which backward ends them) ++ running statistics ++ frozen
//   summand = gradients (same layout) ++ the shard's statistics ++ loss, correct predictions,
//             votes
//
// Frozen are weights and statistics of layers that are not trained: nothing but an engine, a file
// and a comparison of all ranks ever reads them, and nothing writes them.
//
// Every range begins at a multiple of kAlignment floats; the gaps hold zeros.
struct Layout {
  static constexpr size_t kAlignment = 16;   // 64 bytes: a cache line, an AVX-512 vector
  static constexpr size_t kStepMetrics = 3;  // loss, correct, votes
  static constexpr size_t kVotes = 2;        // of the metrics

  std::vector<Range> parameters;  // by parameter index of the graph
  std::vector<bool> decays;       // by parameter index: weight decay applies
  std::vector<double> rates;      // by parameter index: factor of the rate; empty: all are 1
  std::vector<size_t> cuts;       // where a bucket may end: behind the last weight of a layer
  std::vector<Range> statistics;  // by statistic index; begin counts from the start of a slice
  size_t weights = 0;             // floats of the weights, gaps included
  size_t state = 0;               // floats of a state slice
  size_t frozen = 0;              // of them, at its end: what is not trained
  size_t summand = 0;             // floats of a summand slice

  size_t trained() const { return state - frozen; }  // floats of weights and statistics that change
  bool IsFrozen(const Range& range) const { return range.begin >= trained() && range.size > 0; }
  double rate(size_t parameter) const { return rates.empty() ? 1 : rates[parameter]; }
  Range tail() const { return {weights, summand - weights}; }  // statistics and metrics
  size_t loss() const { return trained(); }                    // index in a summand
  size_t correct() const { return loss() + 1; }
  size_t votes() const { return loss() + kVotes; }  // shards whose rank wants to stop (Batch::vote)
};

// A contiguous range of a summand that becomes final at one moment of backward.
struct Bucket {
  int index = 0;
  Range range;
};

}  // namespace trireme
