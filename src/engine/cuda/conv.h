#pragma once
#include <cuda_runtime_api.h>

#include <compare>
#include <cstddef>
#include <map>
#include <memory>

#include "engine/cuda/libraries.h"
#include "engine/cuda/window.h"
#include "graph/engine_options.h"

namespace trireme::cuda {

enum class ConvKind { kForward, kGradInput, kGradWeights };

// A convolution of `samples` images in NHWC; weights lie as [out][kh][kw][in].
struct ConvShape {
  ConvKind kind;
  int samples;
  Window window;  // over the inputs
  int out;        // channels of the results
  auto operator<=>(const ConvShape&) const = default;
};

// Convolutions by cuDNN in float32, or where it has no plan by plain kernels. How one is computed
// is asked once for its sizes and kept: the first plan of cuDNN's heuristic whose sums have one
// order, and without tf32 one that does not round; nothing is measured, so it is the same in every
// run. One thread at a time.
class Conv {
 public:
  // On one stream. tf32: operands may be rounded to tf32. `only_plain`: without cuDNN, for tests.
  Conv(std::shared_ptr<const Libraries> libraries, Precision precision, cudaStream_t stream,
       bool only_plain = false);
  ~Conv();
  Conv(const Conv&) = delete;

  // Of scratch memory that Run wants for these sizes. Smaller shards make do with what the
  // largest one wants.
  size_t ScratchBytes(const ConvShape& shape);

  // kForward: x, weights, y. kGradInput: dy, weights, dx. kGradWeights: x, dy, weights.
  void Run(const ConvShape& shape, const float* a, const float* b, float* result,
           std::byte* scratch, size_t scratch_bytes);

  int plain() const { return plain_; }  // sizes for which cuDNN had no plan

 private:
  struct Plan;
  const Plan& PlanFor(const ConvShape& shape, size_t most_scratch);
  std::unique_ptr<const Plan> Ask(const ConvShape& shape, size_t most_scratch) const;

  const std::shared_ptr<const Libraries> libraries_;
  const Precision precision_;
  const cudaStream_t stream_;
  const bool only_plain_;
  cudnnHandle_t handle_ = nullptr;
  std::map<ConvShape, std::unique_ptr<const Plan>> plans_;
  int plain_ = 0;
};

}  // namespace trireme::cuda
