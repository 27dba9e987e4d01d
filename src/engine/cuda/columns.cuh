#pragma once
#include "engine/cuda/block.cuh"
#include "engine/cuda/columns.h"
#include "engine/cuda/pack.cuh"

namespace trireme::cuda {

// Two sums for each channel. A visitor, copied into each thread, says of what:
//   Begin(c)                  the thread's channels are c .. c + kN
//   Fetched Fetch(row, c)     kN values
//   Add(fetched, a, b)        what they add to the sums
//   Finish(c, a, b)           takes the sums of a channel
//   kUnroll                   how many packs are fetched before the first is looked at
//   kBlocks                   how many blocks have their numbers in the registers of a processor
template <int kN, class Visitor>
__global__ void __launch_bounds__(kColumnThreads, Visitor::kBlocks)
    VisitColumns(Columns g, Visitor visitor, float* parts, unsigned* counters) {
  constexpr int kLanes = kN == 1 ? 32 : 8, kDown = kColumnThreads / kLanes, kWidth = kLanes * kN;
  constexpr int kWarps = kColumnThreads / 32, kUnroll = Visitor::kUnroll;
  __shared__ float shared[kWarps][2 * kWidth];
  const int lane = int(threadIdx.x) % kLanes, down = int(threadIdx.x) / kLanes;
  const int warp = int(threadIdx.x) / 32;
  const int c = int(blockIdx.x) * kWidth + lane * kN;
  const size_t begin = blockIdx.y * g.chunk;
  const size_t end = begin + g.chunk < g.rows ? begin + g.chunk : g.rows;

  Floats<kN> first = {}, second = {};
  if (c < g.channels) {
    visitor.Begin(c);
    size_t row = begin + down;
    for (; row + (kUnroll - 1) * kDown < end; row += kUnroll * kDown) {
      typename Visitor::Fetched fetched[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        fetched[u] = visitor.Fetch(row + size_t(u) * kDown, c);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) visitor.Add(fetched[u], first, second);
    }
    for (; row < end; row += kDown) {
      visitor.Add(visitor.Fetch(row, c), first, second);
    }
  }

  if constexpr (kLanes < 32) {  // the rows of a warp
#pragma unroll
    for (int i = 0; i < kN; ++i) {
#pragma unroll
      for (int apart = kLanes; apart < 32; apart *= 2) {
        first[i] += __shfl_xor_sync(0xffffffffu, first[i], apart);
        second[i] += __shfl_xor_sync(0xffffffffu, second[i], apart);
      }
    }
  }
  if (int(threadIdx.x) % 32 < kLanes) {
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      shared[warp][lane * kN + i] = first[i];
      shared[warp][kWidth + lane * kN + i] = second[i];
    }
  }
  __syncthreads();

  // From here on the first kWidth threads have a channel each.
  const int own = int(threadIdx.x), channel = int(blockIdx.x) * kWidth + own;
  const bool owns = own < kWidth && channel < g.channels;
  float* const of_group = parts + size_t(blockIdx.x) * gridDim.y * 2 * kWidth;
  if (own < kWidth) {
    double a = 0, b = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      a += shared[w][own];
      b += shared[w][kWidth + own];
    }
    if (gridDim.y == 1) {
      if (owns) visitor.Finish(channel, a, b);
    } else {
      float* const part = of_group + size_t(blockIdx.y) * 2 * kWidth;
      part[own] = float(a);
      part[kWidth + own] = float(b);
    }
  }
  if (gridDim.y == 1) return;

  // Four sums of a thread, of every kTurns-th chunk; then those of all turns.
  if (!IsLastBlock(&counters[blockIdx.x], gridDim.y)) return;
  constexpr int kFours = 2 * kWidth / 4, kTurns = kColumnThreads / kFours;
  __shared__ double totals[kTurns][2 * kWidth];
  const int place = int(threadIdx.x) % kFours, turn = int(threadIdx.x) / kFours;
  double sum[4] = {};
#pragma unroll 8
  for (unsigned chunk = unsigned(turn); chunk < gridDim.y; chunk += kTurns) {
    const float4 four =
        __ldcg(reinterpret_cast<const float4*>(of_group + size_t(chunk) * 2 * kWidth) + place);
    sum[0] += four.x, sum[1] += four.y, sum[2] += four.z, sum[3] += four.w;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) totals[turn][4 * place + i] = sum[i];
  __syncthreads();
  if (!owns) return;
  double a = 0, b = 0;
#pragma unroll
  for (int t = 0; t < kTurns; ++t) {
    a += totals[t][own];
    b += totals[t][kWidth + own];
  }
  visitor.Finish(channel, a, b);
}

template <int kN, class Visitor>
void LaunchVisitColumns(cudaStream_t stream, const Columns& g, const Visitor& visitor,
                        const ColumnScratch& scratch) {
  const dim3 grid(unsigned(g.groups), unsigned(g.chunks));
  VisitColumns<kN>
      <<<grid, kColumnThreads, 0, stream>>>(g, visitor, scratch.parts, scratch.counters);
}

}  // namespace trireme::cuda
