#pragma once
#include <cstdint>
#include <optional>

#include "record/metrics.h"

namespace trireme {

// A stretch of training as the loader of one rank sees it.
struct InputLoad {
  double seconds = 0;   // of training
  double waited_s = 0;  // of them, for samples
  int64_t steps = 0;
  LoaderRecord loader;
  int compute_threads = 1;
  int cores = 1;         // that computing and fetching share
  int picture_size = 0;  // pixels across, where pictures are decoded; 0: they are not

  void Add(const InputLoad& more);
};

// What a stretch would have taken with so many threads fetching, of the same work or less of it.
// Fetching goes on beside computing, so the slowest bounds it: computing, fetching shared by the
// threads, or the cores, which both need.
double PredictSeconds(const InputLoad& load, int threads, const LoaderRecord& work);

// Nothing unless training waited for more than 5 % of the time, and for longer than the hand-over
// between threads takes anyway.
std::optional<InputRecord> FindInputBound(const InputLoad& load);

}  // namespace trireme
