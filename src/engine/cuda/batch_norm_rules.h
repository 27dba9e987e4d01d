#pragma once
#include <cstddef>
#include <optional>

// Batch-norm reads a value twice: for its sums, then to apply what follows from them. A small one
// fits into the memory of the processors: clusters of blocks hold it between the two, and one
// kernel does what else takes two.

namespace trireme::cuda {

// What a card lets clusters have; without any blocks there are none.
struct ClusterLimits {
  int processors = 0;
  int blocks = 0;           // of a cluster, at most
  size_t shared_bytes = 0;  // of a block, at most
};

// A value whose channels are populations, and a pass over it: how many arrays of its size it reads,
// once each, how many of that size a block holds meanwhile, and how many it writes.
struct NormSizes {
  size_t rows;
  int channels;
  size_t element_bytes;
  int read, held, written;
};

// Each cluster has `lanes` packs of channels, each of its blocks a chunk of their rows.
struct NormCluster {
  static constexpr int kMostThreads = 512;  // of a block
  static constexpr int kPack = 8;           // channels of a thread
  static constexpr int kMostBlocks = 16;    // of a cluster

  int lanes;   // 2 or 4
  int blocks;  // a power of two
  int threads;
  int groups;    // clusters
  size_t chunk;  // rows; the last may be shorter
  size_t turns;  // rows of a thread, at most
  size_t shared_bytes, most_shared_bytes;
};

// The fastest way to have a cluster do it; none: it does not fit, or takes longer than two kernels.
std::optional<NormCluster> PlanNormCluster(const NormSizes& sizes, const ClusterLimits& limits);

}  // namespace trireme::cuda
