#include "engine/cuda/batch_norm_rules.h"

#include <algorithm>

namespace trireme::cuda {
namespace {

// Fitted to times on an H200: microseconds, and bytes in one.
constexpr double kKernel = 4.5;                // of one that moves little
constexpr double kSync = 0.5, kSyncOf = 0.03;  // blocks that wait for each other, and each of them
constexpr int kAtOnce = 64;                    // blocks of clusters that begin together
constexpr double kLaterBlock = 0.027;          // each that begins later
constexpr double kProcessorRate = 90e3;        // of one processor, with rows of 64 bytes or more
constexpr double kNarrowRate = 50e3;           // with shorter ones
constexpr int kNeighbourhoods = 8;             // of processors that share a way to memory;
constexpr double kNeighbourRate = 600e3;       // a cluster lies in one of them
constexpr size_t kMostValue = 7'000'000;       // beyond it does not stay in the cache

constexpr double kSumsKernel = 6.5, kApplyKernel = 3.5;  // of the two kernels
constexpr double kWorth = 0.9;  // of their time, that one is to take at most
constexpr double kSumsRate = 4e6, kApplyRate = 4.5e6;

constexpr size_t kFewTurns = 4;          // are better than more threads
constexpr size_t kOwnShared = 16 << 10;  // of a block, for the sums

size_t DivideUp(size_t a, size_t b) { return (a + b - 1) / b; }

NormCluster ClusterOf(const NormSizes& s, const ClusterLimits& limits, int lanes, int blocks) {
  const size_t packs = size_t(s.channels / NormCluster::kPack);
  NormCluster cluster = {.lanes = lanes,
                         .blocks = blocks,
                         .groups = int(DivideUp(packs, size_t(lanes))),
                         .chunk = DivideUp(s.rows, size_t(blocks))};
  const size_t most = size_t(NormCluster::kMostThreads);
  cluster.threads = int(cluster.chunk * size_t(lanes) <= kFewTurns * most / 2 ? most / 2 : most);
  cluster.turns = DivideUp(cluster.chunk, size_t(cluster.threads / lanes));
  cluster.shared_bytes = size_t(cluster.threads) * cluster.turns * size_t(s.held) *
                         NormCluster::kPack * s.element_bytes;
  cluster.most_shared_bytes = limits.shared_bytes - kOwnShared;
  return cluster;
}

// Is there a processor for each block? Clusters leave some out; blocks on their own may come later.
bool RunsAtOnce(const NormCluster& cluster, const ClusterLimits& limits) {
  return cluster.blocks == 1 ||
         cluster.groups * cluster.blocks <= limits.processors - cluster.blocks - 4;
}

size_t BytesOf(const NormSizes& s) { return s.rows * size_t(s.channels) * s.element_bytes; }

double TimeOf(const NormSizes& s, const ClusterLimits& limits, const NormCluster& cluster) {
  const size_t arrays = size_t(s.read + s.written);
  const size_t of_row = size_t(cluster.lanes) * NormCluster::kPack * s.element_bytes;
  const double rate = of_row < 64 ? kNarrowRate : kProcessorRate;
  const double one = double(cluster.chunk * of_row * arrays) / rate;
  const double shared =
      double(BytesOf(s) * arrays) / (kNeighbourRate * std::min(cluster.groups, kNeighbourhoods));
  const double moving = std::max(one, shared);
  if (cluster.blocks == 1) {
    return kKernel + double(DivideUp(size_t(cluster.groups), size_t(limits.processors))) * moving;
  }
  const int later = std::max(0, cluster.blocks * cluster.groups - kAtOnce);
  return kKernel + kSync + cluster.blocks * kSyncOf + later * kLaterBlock + moving;
}

double TimeOfTwo(const NormSizes& s) {
  // The second kernel reads what the one for sums has read or, of what it sums up itself, written.
  const double first = s.read + s.written - 1, second = s.held + 1;
  const double bytes = double(BytesOf(s));
  return kSumsKernel + bytes * first / kSumsRate + kApplyKernel + bytes * second / kApplyRate;
}

}  // namespace

std::optional<NormCluster> PlanNormCluster(const NormSizes& sizes, const ClusterLimits& limits) {
  if (limits.blocks == 0 || limits.shared_bytes < kOwnShared) return {};
  if (sizes.rows == 0 || sizes.channels % NormCluster::kPack != 0) return {};
  if (BytesOf(sizes) > kMostValue) return {};
  std::optional<NormCluster> best;
  double least = kWorth * TimeOfTwo(sizes);
  for (const int lanes : {4, 2}) {
    for (int blocks = 1; blocks <= limits.blocks && blocks <= NormCluster::kMostBlocks;
         blocks *= 2) {
      const NormCluster cluster = ClusterOf(sizes, limits, lanes, blocks);
      if (cluster.shared_bytes > cluster.most_shared_bytes) continue;
      if (!RunsAtOnce(cluster, limits)) continue;
      const double time = TimeOf(sizes, limits, cluster);
      if (time >= least) continue;
      least = time;
      best = cluster;
    }
  }
  return best;
}

}  // namespace trireme::cuda
