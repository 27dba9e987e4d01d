#include "engine/cuda/gemm.h"

#include "base/error.h"

namespace trireme::cuda {
namespace {

constexpr uint32_t kAlignment = 64;  // bytes: of a Layout's ranges and a program's values

// Partial sums are added in one order; in place they might come as they are ready.
constexpr uint32_t kReductions =
    CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;

}  // namespace

// cuBLASLt counts by columns: what it computes is the transpose of the product, from b and a.
struct Gemm::Plan {
  explicit Plan(const Libraries& l) : libraries(l) {}
  ~Plan() {
    if (descriptor) libraries.cublasLtMatmulDescDestroy(descriptor);
    for (const cublasLtMatrixLayout_t layout : {a, b, c}) {
      if (layout) libraries.cublasLtMatrixLayoutDestroy(layout);
    }
  }
  Plan(const Plan&) = delete;

  const Libraries& libraries;
  cublasLtMatmulDesc_t descriptor = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulHeuristicResult_t found = {};
};

Gemm::Gemm(std::shared_ptr<const Libraries> libraries, Precision precision)
    : libraries_(std::move(libraries)), precision_(precision) {
  libraries_->Check(libraries_->cublasLtCreate(&handle_), "cublasLtCreate");
}

Gemm::~Gemm() {
  plans_.clear();
  libraries_->cublasLtDestroy(handle_);
}

const Gemm::Plan& Gemm::PlanFor(const MatrixProduct& p) {
  std::unique_ptr<Plan>& kept = plans_[p];
  if (kept) return *kept;
  const Libraries& l = *libraries_;
  auto plan = std::make_unique<Plan>(l);
  const cublasComputeType_t compute =
      precision_ == Precision::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  l.Check(l.cublasLtMatmulDescCreate(&plan->descriptor, compute, CUDA_R_32F),
          "cublasLtMatmulDescCreate");
  const auto describe = [&](cublasLtMatmulDescAttributes_t attribute, cublasOperation_t value) {
    l.Check(l.cublasLtMatmulDescSetAttribute(plan->descriptor, attribute, &value, sizeof(value)),
            "cublasLtMatmulDescSetAttribute");
  };
  describe(CUBLASLT_MATMUL_DESC_TRANSA, p.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  describe(CUBLASLT_MATMUL_DESC_TRANSB, p.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  // A matrix that lies in memory as [rows][columns].
  const auto lay_out = [&](cublasLtMatrixLayout_t& layout, int64_t rows, int64_t columns) {
    l.Check(l.cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, uint64_t(columns), uint64_t(rows),
                                         columns),
            "cublasLtMatrixLayoutCreate");
  };
  p.a_transposed ? lay_out(plan->a, p.depth, p.rows) : lay_out(plan->a, p.rows, p.depth);
  p.b_transposed ? lay_out(plan->b, p.columns, p.depth) : lay_out(plan->b, p.depth, p.columns);
  lay_out(plan->c, p.rows, p.columns);

  cublasLtMatmulPreference_t preference = nullptr;
  l.Check(l.cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const std::shared_ptr<void> owner(preference, l.cublasLtMatmulPreferenceDestroy);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    l.Check(l.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
            "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kScratchBytes});
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kReductions);
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    prefer(attribute, kAlignment);
  }
  int count = 0;
  l.Check(l.cublasLtMatmulAlgoGetHeuristic(handle_, plan->descriptor, plan->b, plan->a, plan->c,
                                           plan->c, preference, 1, &plan->found, &count),
          "cublasLtMatmulAlgoGetHeuristic");
  if (count == 0) throw Error("cublasLtMatmulAlgoGetHeuristic finds no algorithm");
  return *(kept = std::move(plan));
}

void Gemm::Multiply(cudaStream_t stream, const MatrixProduct& product, const float* a,
                    const float* b, float* c, bool accumulate, std::byte* scratch) {
  try {
    const Plan& plan = PlanFor(product);
    const float one = 1, share = accumulate ? 1 : 0;
    libraries_->Check(libraries_->cublasLtMatmul(handle_, plan.descriptor, &one, b, plan.b, a,
                                                 plan.a, &share, c, plan.c, c, plan.c,
                                                 &plan.found.algo, scratch, kScratchBytes, stream),
                      "cublasLtMatmul");
  } catch (Error& error) {
    error.Add("product of {}x{} and {}x{}", product.rows, product.depth, product.depth,
              product.columns);
    throw;
  }
}

}  // namespace trireme::cuda
