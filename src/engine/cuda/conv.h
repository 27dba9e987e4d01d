#pragma once
#include <cuda_runtime_api.h>

#include <compare>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "engine/cuda/choices.h"
#include "engine/cuda/libraries.h"
#include "engine/cuda/tune.h"
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

// Convolutions by cuDNN of arrays as products want them, or where it has no plan by plain kernels.
// How one is computed is asked once for its sizes and kept: what was chosen before, or else the
// first plan that cuDNN advises whose sums have one order, in float32 one that does not round. One
// thread at a time.
class Conv {
 public:
  // On one stream, until Use says another. bf16, fp16: of such arrays; tf32: operands may be
  // rounded to tf32. `only_plain`: without cuDNN, for tests. Without `choices` (null) there are
  // none: always the first plan whose sums have one order.
  Conv(std::shared_ptr<const Libraries> libraries, Precision precision, const Choices* choices,
       cudaStream_t stream, bool only_plain = false);
  ~Conv();
  Conv(const Conv&) = delete;

  // Of scratch memory that Run wants for these sizes. Smaller shards make do with what the
  // largest one wants. Sizes that are asked for are tuned.
  size_t ScratchBytes(const ConvShape& shape);

  // Those that were asked for and have no choice yet; they live as long as this.
  std::vector<Tunable> Tunables();

  // kForward: x, weights, y. kGradInput: dy, weights, dx. kGradWeights: x, dy, weights.
  void Run(const ConvShape& shape, const void* a, const void* b, void* result, std::byte* scratch,
           size_t scratch_bytes);

  // Work from here on goes to that stream.
  void Use(cudaStream_t stream);

  int plain() const { return plain_; }  // sizes for which cuDNN had no plan

 private:
  struct Plan;
  Plan& PlanFor(const ConvShape& shape, size_t most_scratch);
  std::unique_ptr<Plan> Ask(const ConvShape& shape, size_t most_scratch) const;
  bool Build(Plan& plan, int way, size_t most_scratch) const;
  void Execute(const Plan& plan, const ConvShape& shape, void* const (&data)[3],
               std::byte* scratch) const;

  const std::shared_ptr<const Libraries> libraries_;
  const Precision precision_;
  const Choices* const choices_;
  cudaStream_t stream_;
  const bool only_plain_;
  cudnnHandle_t handle_ = nullptr;
  std::map<ConvShape, std::unique_ptr<Plan>> plans_;
  int plain_ = 0;
};

}  // namespace trireme::cuda
