#include "engine/cuda/speed.h"

#include <algorithm>

#include "base/clock.h"
#include "base/function_ref.h"
#include "engine/cuda/check.h"
#include "engine/cuda/gemm.h"
#include "engine/cuda/noise.h"

namespace trireme::cuda {
namespace {

// Calls per second of work that is enqueued again and again.
double CallsPerSecond(CudaQueue& queue, double seconds, FunctionRef<void()> enqueue) {
  enqueue();  // what is loaded at first use
  queue.Sync();
  const Stopwatch once;
  enqueue();
  queue.Sync();
  const int calls = std::max(1, int(seconds / std::max(1e-6, once.seconds())));
  const Stopwatch watch;
  for (int i = 0; i < calls; ++i) enqueue();
  queue.Sync();
  return calls / watch.seconds();
}

}  // namespace

double MeasureProducts(CudaDevice& card, Precision precision, double seconds) {
  constexpr int64_t kSize = 8192;
  card.Select();
  CudaQueue queue(card);
  Gemm gemm(OpenLibraries(), precision, nullptr);
  const Element held = OperandsIn(precision);
  const MatrixProduct product = {
      .rows = kSize, .depth = kSize, .columns = kSize, .operands = held, .result = held};
  constexpr size_t kNumbers = size_t(kSize * kSize);
  const CardMemory operands(card, 3 * kNumbers * size_t(BytesOf(held)), "measurements");
  const CardMemory scratch(card, gemm.ScratchBytes(product), "measurements");
  LaunchNoise(queue.stream(), {operands.data(), held}, 3 * kNumbers);
  CheckLaunch("noise");
  auto* const a = static_cast<std::byte*>(operands.data());
  const size_t matrix = operands.bytes() / 3;
  const double calls = CallsPerSecond(queue, seconds, [&] {
    gemm.Multiply(queue.stream(), product, a, a + matrix, a + 2 * matrix, false, {},
                  static_cast<std::byte*>(scratch.data()));
  });
  return calls * 2 * double(kSize) * double(kSize) * double(kSize);
}

double MeasureCopy(CudaDevice& card, double seconds) {
  constexpr size_t kBytes = size_t{1} << 30;
  card.Select();
  CudaQueue queue(card);
  const CardMemory from(card, kBytes, "measurements"), to(card, kBytes, "measurements");
  const double calls = CallsPerSecond(queue, seconds, [&] {
    Check(cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDeviceToDevice, queue.stream()),
          "cudaMemcpyAsync");
  });
  return calls * double(kBytes);
}

}  // namespace trireme::cuda
