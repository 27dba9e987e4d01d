#include "engine/cuda/gemm.h"

#include <algorithm>

#include "base/error.h"

namespace trireme::cuda {
namespace {

constexpr size_t kScratchBytes = size_t{32} << 20;  // NVIDIA's advice for large cards
constexpr int kMostWays = 8;                        // that are tried
constexpr uint32_t kAlignment = 64;  // bytes: of a Layout's ranges and a program's values

// Partial sums are added in one order; in place they might come as they are ready. They are not
// kept in fp16, which may not hold them where it holds the whole.
uint32_t ReductionsTo(Element result) {
  return CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
         (result == Element::kHalf ? 0 : CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);
}

cudaDataType_t TypeOf(Element element) {
  return element == Element::kBFloat ? CUDA_R_16BF
         : element == Element::kHalf ? CUDA_R_16F
                                     : CUDA_R_32F;
}

// Its bias has a number for each row of what cuBLASLt computes: a column of ours.
cublasLtEpilogue_t EpilogueOf(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kNone:
      break;
    case Epilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::kRelu:
      return CUBLASLT_EPILOGUE_RELU;
    case Epilogue::kBiasRelu:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case Epilogue::kBiasReluMask:
      return CUBLASLT_EPILOGUE_RELU_AUX_BIAS;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

bool HasBias(Epilogue e) {
  return e == Epilogue::kBias || e == Epilogue::kBiasRelu || e == Epilogue::kBiasReluMask;
}
bool HasMask(Epilogue e) { return e == Epilogue::kBiasReluMask; }

constexpr int64_t kMaskColumns = 128;  // cuBLASLt's rows of bits are a multiple of 16 bytes

std::string KeyOf(const MatrixProduct& p, Precision precision) {
  return fmt::format(
      "product {} {} {}{}{} {} {} {}{}{}", p.rows, p.depth, p.columns, p.a_transposed ? " a" : "",
      p.b_transposed ? " b" : "",
      p.operands == Element::kFloat && precision == Precision::kTf32 ? NameOf(precision)
                                                                     : NameOf(p.operands),
      NameOf(p.result), int(p.epilogue), p.adds ? " adds" : "", p.exact ? " exact" : "");
}

constexpr size_t Aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

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
  std::vector<cublasLtMatmulHeuristicResult_t> found;  // as advised, best first
  size_t way = 0;                                      // the one that is used
  int uses = 0;                                        // how often it was asked for
};

Gemm::Gemm(std::shared_ptr<const Libraries> libraries, Precision precision, const Choices* choices)
    : libraries_(std::move(libraries)), precision_(precision), choices_(choices) {
  libraries_->Check(libraries_->cublasLtCreate(&handle_), "cublasLtCreate");
}

Gemm::~Gemm() {
  plans_.clear();
  libraries_->cublasLtDestroy(handle_);
}

bool Gemm::Can(const MatrixProduct& product) { return PlanFor(product) != nullptr; }

size_t Gemm::ScratchBytes(const MatrixProduct& product) {
  if (Plan* const plan = PlanFor(product)) ++plan->uses;
  return kScratchBytes;
}

std::vector<Tunable> Gemm::Tunables(cudaStream_t stream) {
  std::vector<Tunable> tunables;
  for (const auto& [product, kept] : plans_) {
    Plan* const plan = kept.get();
    const std::string key = KeyOf(product, precision_);
    if (!plan || plan->uses == 0 || !choices_ || choices_->Find(key)) continue;
    const MatrixProduct& p = product;
    const size_t number = size_t(BytesOf(p.operands)), held = size_t(BytesOf(p.result));
    const size_t a = Aligned(size_t(p.rows * p.depth) * number),
                 b = Aligned(size_t(p.depth * p.columns) * number),
                 c = Aligned(size_t(p.rows * p.columns) * held),
                 bias = Aligned(size_t(p.columns) * sizeof(float)),
                 mask = HasMask(p.epilogue) ? Aligned(size_t(p.rows * p.columns) / 8) : 0;
    const auto run = [=, this](int way, std::byte* memory) {
      plan->way = size_t(way);
      std::byte* const result = memory + a + b;
      std::byte* const masks = result + c + bias;
      const Beside beside = {.bias = HasBias(p.epilogue) ? result + c : nullptr,
                             .added = p.adds ? result : nullptr,
                             .mask = mask ? reinterpret_cast<uint8_t*>(masks) : nullptr};
      Multiply(stream, p, memory, memory + a, result, false, beside, masks + mask);
      return true;
    };
    tunables.push_back({.key = key,
                        .flops = 2.0 * double(p.rows) * double(p.depth) * double(p.columns),
                        .bytes = double(a + b + c + (p.adds ? c : 0)),
                        .uses = plan->uses,
                        .ways = int(plan->found.size()),
                        .memory = a + b + c + bias + mask + kScratchBytes,
                        .run = run,
                        .take = [plan](int way) { plan->way = size_t(way); }});
  }
  return tunables;
}

Gemm::Plan* Gemm::PlanFor(const MatrixProduct& product) {
  const auto found = plans_.find(product);
  if (found != plans_.end()) return found->second.get();
  return plans_.emplace(product, Ask(product)).first->second.get();
}

std::unique_ptr<Gemm::Plan> Gemm::Ask(const MatrixProduct& p) const {
  const Libraries& l = *libraries_;
  if (HasMask(p.epilogue) && p.columns % kMaskColumns != 0) return nullptr;
  auto plan = std::make_unique<Plan>(l);
  const bool rounds = p.operands == Element::kFloat && precision_ == Precision::kTf32 && !p.exact;
  const cublasComputeType_t compute = rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  l.Check(l.cublasLtMatmulDescCreate(&plan->descriptor, compute, CUDA_R_32F),
          "cublasLtMatmulDescCreate");
  const auto describe = [&](cublasLtMatmulDescAttributes_t attribute, auto value) {
    l.Check(l.cublasLtMatmulDescSetAttribute(plan->descriptor, attribute, &value, sizeof(value)),
            "cublasLtMatmulDescSetAttribute");
  };
  describe(CUBLASLT_MATMUL_DESC_TRANSA, p.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  describe(CUBLASLT_MATMUL_DESC_TRANSB, p.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  describe(CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(p.epilogue));
  // There may be no way without them; where they point to is said when the product is computed.
  constexpr uintptr_t kSomewhere = uintptr_t{1} << 20;
  if (HasBias(p.epilogue)) describe(CUBLASLT_MATMUL_DESC_BIAS_POINTER, kSomewhere);
  if (HasMask(p.epilogue)) {
    describe(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, kSomewhere);
    describe(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.columns);
  }
  // A matrix that lies in memory as [rows][columns].
  const auto lay_out = [&](cublasLtMatrixLayout_t& layout, Element element, int64_t rows,
                           int64_t columns) {
    l.Check(l.cublasLtMatrixLayoutCreate(&layout, TypeOf(element), uint64_t(columns),
                                         uint64_t(rows), columns),
            "cublasLtMatrixLayoutCreate");
  };
  p.a_transposed ? lay_out(plan->a, p.operands, p.depth, p.rows)
                 : lay_out(plan->a, p.operands, p.rows, p.depth);
  p.b_transposed ? lay_out(plan->b, p.operands, p.columns, p.depth)
                 : lay_out(plan->b, p.operands, p.depth, p.columns);
  lay_out(plan->c, p.result, p.rows, p.columns);

  cublasLtMatmulPreference_t preference = nullptr;
  l.Check(l.cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const std::shared_ptr<void> owner(preference, l.cublasLtMatmulPreferenceDestroy);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    l.Check(l.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
            "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kScratchBytes});
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, ReductionsTo(p.result));
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    prefer(attribute, kAlignment);
  }
  int count = 0;
  plan->found.resize(choices_ ? kMostWays : 1);
  const cublasStatus_t status = l.cublasLtMatmulAlgoGetHeuristic(
      handle_, plan->descriptor, plan->b, plan->a, plan->c, plan->c, preference,
      int(plan->found.size()), plan->found.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS && status != CUBLAS_STATUS_NOT_SUPPORTED) {
    l.Check(status, "cublasLtMatmulAlgoGetHeuristic");
  }
  if (status != CUBLAS_STATUS_SUCCESS || count == 0) return nullptr;
  plan->found.resize(size_t(count));
  if (choices_) {
    const int way = choices_->Find(KeyOf(p, precision_)).value_or(0);
    plan->way = size_t(std::min(way, count - 1));
  }
  return plan;
}

void Gemm::Multiply(cudaStream_t stream, const MatrixProduct& product, const void* a, const void* b,
                    void* c, bool accumulate, const Beside& beside, std::byte* scratch) {
  try {
    const Plan* const plan = PlanFor(product);
    if (!plan) throw Error("cublasLtMatmulAlgoGetHeuristic finds no algorithm");
    const Libraries& l = *libraries_;
    const auto point = [&](cublasLtMatmulDescAttributes_t attribute, const void* to) {
      if (!to) return;
      l.Check(l.cublasLtMatmulDescSetAttribute(plan->descriptor, attribute, &to, sizeof(to)),
              "cublasLtMatmulDescSetAttribute");
    };
    point(CUBLASLT_MATMUL_DESC_BIAS_POINTER, beside.bias);
    point(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, beside.mask);
    const float one = 1, share = accumulate || beside.added ? 1 : 0;
    l.Check(l.cublasLtMatmul(handle_, plan->descriptor, &one, b, plan->b, a, plan->a, &share,
                             beside.added ? beside.added : c, plan->c, c, plan->c,
                             &plan->found[plan->way].algo, scratch, kScratchBytes, stream),
            "cublasLtMatmul");
  } catch (Error& error) {
    error.Add("product of {}x{} and {}x{}", product.rows, product.depth, product.depth,
              product.columns);
    throw;
  }
}

}  // namespace trireme::cuda
