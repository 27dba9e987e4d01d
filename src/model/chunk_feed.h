#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "data/loader.h"
#include "data/options.h"
#include "model/sample_slots.h"
#include "recipe/recipe.h"

namespace trireme {

// data.threads for fetching samples that are evaluated, of a rank that has so many cores and
// computes with so many threads.
LoaderThreads EvaluationThreads(const DataOptions& options, const Source& samples, int cores,
                                int computing);
LoaderThreads EvaluationThreads(const Recipe& recipe, const Source& samples);  // a rank alone

// Samples in their order, some chunks at a time; the next ones are fetched while some are
// evaluated. One thread.
class ChunkFeed {
 public:
  // Samples whose losses are one sum, each of so many values. A function of the sample's size
  // alone: the sums of chunks must not depend on the ranks, nor on what computes.
  static int ChunkSize(int64_t values);
  // As many whole chunks as give at least `wanted` samples, if there are so many: in samples.
  static int Capacity(int chunk_size, int wanted, int64_t samples);

  // Samples for `engine`. `capacity`: so many at a time, whole chunks. `set`: where they lie on its
  // device, for the feed's life; null: nowhere.
  ChunkFeed(const Source& samples, const Normalizer& normalizer, int chunk_size, int capacity,
            const LoaderThreads& threads, Engine& engine, const ResidentSet* set = nullptr);

  // Worker w of n, from the first chunk: each takes some at a time in turn, and none takes so many
  // that others have nothing to do. All of the last time were taken.
  void Begin(int64_t worker = 0, int64_t workers = 1);
  const Filled* Next();  // null: no more. Valid until released.
  void Release() { loader_.Release(); }

  Batch BatchOf(const Filled& filled) const;  // its samples and labels

 private:
  const int64_t size_;
  const int chunk_size_, capacity_;
  const Feed feed_;
  const SampleSlots slots_;
  int64_t at_once_ = 0;              // samples, for this number of workers
  int64_t wanted_ = 0, stride_ = 1;  // of so many each
  int64_t open_ = 0;                 // wanted and not taken
  Loader loader_;
};

}  // namespace trireme
