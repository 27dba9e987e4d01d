#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "data/loader.h"
#include "data/options.h"
#include "flat/host_memory.h"
#include "recipe/recipe.h"

namespace trireme {

// data.threads for fetching samples that are evaluated, of a rank that has so many cores and
// computes with so many threads.
LoaderThreads EvaluationThreads(const DataOptions& options, const Source& samples, int cores,
                                int computing);
LoaderThreads EvaluationThreads(const Recipe& recipe, const Source& samples);  // a rank alone

// Samples in their order, chunk by chunk; the next chunk is fetched while one is evaluated. One
// thread.
class ChunkFeed {
 public:
  // Samples that are evaluated at once, each of so many values. A function of the sample's size
  // alone: the sums of chunks must not depend on the ranks.
  static int ChunkSize(int64_t values);

  // Samples lie in memory that `device` reaches.
  ChunkFeed(const Source& samples, const Normalizer& normalizer, int chunk_size,
            const LoaderThreads& threads, Device& device);

  // From the first chunk: chunks `first`, `first` + `stride`, ... All of the last time were taken.
  void Begin(int64_t first = 0, int64_t stride = 1);
  const Filled* Next();  // null: no more. Valid until released.
  void Release() { loader_.Release(); }

  std::span<const float> inputs(const Filled& filled) const;
  std::span<const int32_t> labels(const Filled& filled) const;

 private:
  const int64_t size_;
  const int chunk_size_;
  const size_t values_;  // of a sample
  const int slots_;
  const HostBuffer<float> inputs_;
  const HostBuffer<int32_t> labels_;
  int64_t wanted_ = 0, stride_ = 1;  // chunks
  int64_t open_ = 0;                 // wanted and not taken
  Loader loader_;
};

}  // namespace trireme
