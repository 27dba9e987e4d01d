#pragma once
#include "engine/cuda/batch_norm.cuh"
#include "engine/cuda/batch_norm_rules.h"
#include "engine/cuda/cluster.cuh"

// How the blocks of a cluster share a value (batch_norm_rules.h) and find sums over it. Such a
// kernel takes a few microseconds: instructions count, and so does the way to them.

namespace trireme::cuda {

// Which part of the value a thread has: a pack of channels in some rows of its block's chunk.
template <int kLanes>
struct ClusterPlace {
  static constexpr int kN = NormCluster::kPack, kWidth = kLanes * kN;
  int rows, channels;
  Population of;  // of each channel
  int doublings;  // of one block to those of a cluster
  int chunk;      // rows
  int packs;      // of an array that a block holds

  __device__ int blocks() const { return 1 << doublings; }
  __device__ int block() const { return int(blockIdx.x) & (blocks() - 1); }
  __device__ int first() const { return (int(blockIdx.x) >> doublings) * kWidth; }  // channel
  __device__ int lane() const { return int(threadIdx.x) % kLanes; }
  __device__ int channel() const { return first() + lane() * kN; }

  // Calls fetch(u, where in the value) for kUnroll packs, then use(u, where in the value, where in
  // what the block holds) for the same.
  template <int kUnroll, class Fetch, class Use>
  __device__ __forceinline__ void ForEachPack(const Fetch& fetch, const Use& use) const {
    const int c = channel();
    if (c >= channels) return;
    const int down = int(blockDim.x) / kLanes, begin = block() * chunk;
    const int end = begin + chunk < rows ? begin + chunk : rows;
    int held = int(threadIdx.x), row = begin + held / kLanes;
    int at = row * channels + c;
#pragma unroll 1
    for (; row < end; row += kUnroll * down) {
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (u == 0 || row + u * down < end) fetch(u, at + u * down * channels);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (u == 0 || row + u * down < end) {
          use(u, at + u * down * channels, held + u * int(blockDim.x));
        }
      }
      held += kUnroll * int(blockDim.x);
      at += kUnroll * down * channels;
    }
  }
  // Calls f(where in the value, where in what the block holds).
  template <class F>
  __device__ __forceinline__ void ForEachPack(const F& f) const {
    ForEachPack<1>([](int, int) {}, [&](int, int at, int held) { f(at, held); });
  }
};

template <class T>
using Pack = Raw<NormCluster::kPack, T>;

template <class T>
__device__ __forceinline__ void CopyPack(Pack<T>* shared, const void* array, int at) {
  const T* const from = static_cast<const T*>(array) + at;
#pragma unroll
  for (int i = 0; i < NormCluster::kPack / kPack<T>; ++i) {
    CopyToShared(&shared->bits[i], from + i * kPack<T>);
  }
}

// Two sums for each channel of a cluster, added up in one order.
template <int kLanes>
struct ClusterSums {
  static constexpr int kN = NormCluster::kPack, kWidth = kLanes * kN, kNumbers = 2 * kWidth;
  static constexpr int kMostWarps = NormCluster::kMostThreads / 32;
  static constexpr int kLeft = kLanes / 2;  // numbers of a thread after Halve
  float of_warps[kMostWarps][kNumbers];
  double of_blocks[NormCluster::kMostBlocks][kNumbers];

  // Threads of a warp that have the same channels add up their numbers; each keeps other ones.
  template <int kCount, int kApart>
  static __device__ __forceinline__ void Halve(Floats<2 * kN>& numbers) {
    if constexpr (kApart >= kLanes) {
      constexpr int kHalf = kCount / 2;
      const bool upper = threadIdx.x & kApart;
#pragma unroll
      for (int i = 0; i < kHalf; ++i) {
        const float sent = upper ? numbers[i] : numbers[kHalf + i];
        const float kept = upper ? numbers[kHalf + i] : numbers[i];
        numbers[i] = kept + __shfl_xor_sync(0xffffffffu, sent, kApart);
      }
      Halve<kHalf, kApart / 2>(numbers);
    }
  }

  // Before it the block has arrived at its cluster; behind it `Sum` is right in all of its blocks.
  // First the kN sums of the one kind, then those of the other.
  __device__ __forceinline__ void Join(const ClusterPlace<kLanes>& place, Floats<2 * kN>& numbers) {
    Halve<2 * kN, 16>(numbers);
    const int first = int(threadIdx.x) % 32 / kLanes * kLeft;
    float* const of_lane = of_warps[threadIdx.x / 32] + place.lane() * kN;
#pragma unroll
    for (int i = 0; i < kLeft; ++i) {
      const int n = first + i;
      of_lane[n / kN * kWidth + n % kN] = numbers[i];
    }
    __syncthreads();
    const bool alone = place.doublings == 0;
    if (!alone) WaitForCluster();  // the others run
    const int threads = int(blockDim.x);
#pragma unroll 1
    for (int t = int(threadIdx.x); t < place.blocks() * kNumbers; t += threads) {
      const int number = t % kNumbers;
      double sums[2] = {};
#pragma unroll 4
      for (int w = 0; w < threads / 32; w += 2) {
        sums[0] += of_warps[w][number];
        sums[1] += of_warps[w + 1][number];
      }
      const double sum = sums[0] + sums[1];
      if (alone) {
        of_blocks[0][number] = sum;
      } else {
        StoreInBlock(&of_blocks[place.block()][number], t / kNumbers, sum);
      }
    }
    if (alone) {
      __syncthreads();
    } else {
      ArriveAtCluster();
      WaitForCluster();
    }
  }

  // Of a channel of the cluster; `kind` 0 or 1.
  __device__ __forceinline__ double Sum(const ClusterPlace<kLanes>& place, int kind,
                                        int channel) const {
    const double* const all = &of_blocks[0][kind * kWidth + channel];
    double sum = all[0];
#pragma unroll 4
    for (int b = 1; b < place.blocks(); ++b) sum += all[b * kNumbers];
    return sum;
  }
};

}  // namespace trireme::cuda
