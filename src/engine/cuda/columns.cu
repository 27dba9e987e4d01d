#include "engine/cuda/columns.cuh"

namespace trireme::cuda {
namespace {

template <int kN, class T>
struct Sums {
  const T* x;
  size_t stride;
  float* sums;
  bool accumulate;

  static constexpr int kUnroll = 4, kBlocks = 2;
  using Fetched = Raw<kN, T>;
  __device__ void Begin(int) {}
  __device__ Fetched Fetch(size_t row, int c) const {
    return cuda::Fetch<kN>(x + row * stride + c);
  }
  __device__ void Add(const Fetched& fetched, Floats<kN>& sum, Floats<kN>&) const {
    const Floats<kN> values = Widen(fetched);
#pragma unroll
    for (int i = 0; i < kN; ++i) sum[i] += values[i];
  }
  __device__ void Finish(int c, double sum, double) const {
    sums[c] = (accumulate ? sums[c] : 0) + float(sum);
  }
};

}  // namespace

void LaunchSumColumns(cudaStream_t stream, const Columns& g, const void* x,
                      const ColumnScratch& scratch, float* sums, bool accumulate, size_t stride) {
  if (stride == 0) stride = size_t(g.channels);
  WithPack(g.element, g.channels, [&](auto zero, auto pack) {
    using T = decltype(zero);
    constexpr int kN = pack.value;
    LaunchVisitColumns<kN>(
        stream, g, Sums<kN, T>{static_cast<const T*>(x), stride, sums, accumulate}, scratch);
  });
}

}  // namespace trireme::cuda
