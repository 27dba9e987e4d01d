#include "engine/cuda/launch.cuh"
#include "engine/cuda/samples.h"

namespace trireme::cuda {
namespace {

constexpr unsigned kLanes = 32, kRows = kThreads / kLanes;

// Each warp takes a row of a picture at a time.
__global__ void DrawRows(SampleBytes samples, float* to) {
  const ByteLook& look = samples.look;
  const int values = look.width * look.channels;
  const size_t rows = size_t(samples.count) * size_t(look.height);
  const size_t step = size_t{gridDim.x} * kRows;
  for (size_t row = size_t{blockIdx.x} * kRows + threadIdx.y; row < rows; row += step) {
    const size_t n = row / size_t(look.height);
    const int y = int(row % size_t(look.height));
    const size_t number = samples.numbers ? size_t(samples.numbers[n]) : n;
    const uint8_t* const sample = samples.bytes + number * size_t(look.size());
    const SampleChange change = samples.changes ? samples.changes[n] : SampleChange();
    float* const line = to + row * size_t(values);
    for (int i = int(threadIdx.x); i < values; i += int(kLanes)) {
      line[i] = ValueAt(sample, look, change, y, i / look.channels, i % look.channels);
    }
  }
}

}  // namespace

void LaunchDrawSamples(cudaStream_t stream, const SampleBytes& samples, float* to) {
  const size_t items = size_t(samples.count) * size_t(samples.look.height) * kLanes;
  DrawRows<<<BlocksFor(items), dim3(kLanes, kRows), 0, stream>>>(samples, to);
}

}  // namespace trireme::cuda
