#include "engine/cuda/launch.cuh"
#include "engine/cuda/rows.cuh"

namespace trireme::cuda {
namespace {

__global__ void SumParts(int chunks, int length, size_t rows, const double* parts, double* totals) {
  __shared__ double shared[kDown][kAcross];
  const int i = int(blockIdx.x * kAcross + threadIdx.x);
  double sum = 0;
  if (i < length) {
    for (int k = int(threadIdx.y); k < chunks; k += kDown) sum += parts[size_t(k) * length + i];
  }
  sum = SumDown(sum, shared);
  if (threadIdx.y != 0) return;
  if (i < length) totals[i] = sum;
  if (i == 0) totals[length] = double(rows);
}

__global__ void SumChunks(Rows r, const float* x, double* parts) {
  __shared__ float shared[kDown][kAcross];
  const int c = int(blockIdx.x * kAcross + threadIdx.x);
  float sum = 0;
  ForEachOfChunk(r, c, [&](size_t at) { sum += x[at]; });
  sum = SumDown(sum, shared);
  if (threadIdx.y == 0 && c < r.channels) parts[size_t(blockIdx.y) * r.channels + c] = sum;
}

__global__ void StoreSums(int channels, const double* totals, float* sums, bool accumulate) {
  ForEachItem(channels, [=](size_t c) { sums[c] = (accumulate ? sums[c] : 0) + float(totals[c]); });
}

}  // namespace

void LaunchSumParts(cudaStream_t stream, const Rows& r, int length, const double* parts,
                    double* totals) {
  const unsigned blocks = unsigned((length + kAcross - 1) / kAcross);
  SumParts<<<blocks, ChunkBlock(), 0, stream>>>(r.chunks, length, r.rows, parts, totals);
}

size_t SumRowsDoubles(const Rows& r) { return r.parts(1) + size_t(r.channels) + 1; }

void LaunchSumRows(cudaStream_t stream, const Rows& r, const float* x, double* scratch, float* sums,
                   bool accumulate) {
  double* totals = scratch + r.parts(1);
  SumChunks<<<ChunkGrid(r), ChunkBlock(), 0, stream>>>(r, x, scratch);
  LaunchSumParts(stream, r, r.channels, scratch, totals);
  StoreSums<<<BlocksFor(r.channels), kThreads, 0, stream>>>(r.channels, totals, sums, accumulate);
}

}  // namespace trireme::cuda
