#pragma once
#include <cuda_runtime_api.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "engine/cuda/libraries.h"
#include "graph/engine_options.h"

namespace trireme::cuda {

// c[rows][columns] (+)= a[rows][depth] b[depth][columns]. A transposed operand lies in memory as
// [depth][rows], or [columns][depth].
struct MatrixProduct {
  int64_t rows, depth, columns;
  bool a_transposed = false, b_transposed = false;
  auto operator<=>(const MatrixProduct&) const = default;
};

// Products by cuBLASLt, of float32 matrices that begin at a multiple of 64 bytes. How a product is
// computed is asked once for its sizes and kept; nothing is measured, so it is the same in every
// run. One thread at a time.
class Gemm {
 public:
  static constexpr size_t kScratchBytes = size_t{32} << 20;  // NVIDIA's advice for large cards

  // tf32: operands may be rounded to tf32; otherwise products are float32.
  Gemm(std::shared_ptr<const Libraries> libraries, Precision precision);
  ~Gemm();
  Gemm(const Gemm&) = delete;

  // `scratch` has kScratchBytes. With `accumulate` the product is added to c.
  void Multiply(cudaStream_t stream, const MatrixProduct& product, const float* a, const float* b,
                float* c, bool accumulate, std::byte* scratch);

 private:
  struct Plan;
  const Plan& PlanFor(const MatrixProduct& product);

  const std::shared_ptr<const Libraries> libraries_;
  const Precision precision_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<MatrixProduct, std::unique_ptr<Plan>> plans_;
};

}  // namespace trireme::cuda
