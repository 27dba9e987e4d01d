#pragma once
#include <cuda_runtime_api.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "engine/cuda/choices.h"
#include "engine/cuda/libraries.h"
#include "engine/cuda/tune.h"
#include "graph/engine_options.h"

namespace trireme::cuda {

// What becomes of a product before it is stored.
enum class Epilogue { kNone, kBias, kRelu, kBiasRelu, kBiasReluMask };

// c[rows][columns] (+)= a[rows][depth] b[depth][columns]. A transposed operand lies in memory as
// [depth][rows], or [columns][depth].
struct MatrixProduct {
  int64_t rows, depth, columns;
  bool a_transposed = false, b_transposed = false;
  Element operands = Element::kFloat;  // what a and b are held as
  Element result = Element::kFloat;    // what c is
  Epilogue epilogue = Epilogue::kNone;
  bool adds = false;   // another matrix, held like c, before the epilogue
  bool exact = false;  // float32 operands are never rounded
  auto operator<=>(const MatrixProduct&) const = default;
};

// What an epilogue reads and writes beside the product.
struct Beside {
  const void* bias = nullptr;   // a number for each column, held like c
  const void* added = nullptr;  // [rows][columns]
  uint8_t* mask = nullptr;      // a bit for each number of c: is it positive? [rows][columns / 8]
};

// Products by cuBLASLt, of matrices that begin at a multiple of 64 bytes. How a product is computed
// is asked once for its sizes and kept: what was chosen before, or else what cuBLASLt advises
// first, which is the same in every run. One thread at a time.
class Gemm {
 public:
  // tf32: operands in float32 may be rounded to tf32; otherwise their products are float32.
  // Without `choices` (null) there are none: always what is advised first.
  Gemm(std::shared_ptr<const Libraries> libraries, Precision precision, const Choices* choices);
  ~Gemm();
  Gemm(const Gemm&) = delete;

  bool Can(const MatrixProduct& product);  // some epilogues there are not for all sizes

  // Of scratch memory that Multiply wants. A product that is asked for is tuned.
  size_t ScratchBytes(const MatrixProduct& product);

  // Those that were asked for and have no choice yet; they live as long as this.
  std::vector<Tunable> Tunables(cudaStream_t stream);

  // `scratch` has ScratchBytes. With `accumulate` the product is added to c.
  void Multiply(cudaStream_t stream, const MatrixProduct& product, const void* a, const void* b,
                void* c, bool accumulate, const Beside& beside, std::byte* scratch);

 private:
  struct Plan;
  Plan* PlanFor(const MatrixProduct& product);  // null: there is none
  std::unique_ptr<Plan> Ask(const MatrixProduct& product) const;

  const std::shared_ptr<const Libraries> libraries_;
  const Precision precision_;
  const Choices* const choices_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<MatrixProduct, std::unique_ptr<Plan>> plans_;
};

}  // namespace trireme::cuda
