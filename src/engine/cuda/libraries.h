#pragma once
#include <cublasLt.h>
#include <cudnn.h>

#include <memory>
#include <string>
#include <string_view>

namespace trireme::cuda {

// What is called of NVIDIA's libraries. They are opened when the first engine is made, so that the
// plugin itself needs neither to be loaded and can say which one is missing.
#define TRIREME_CUDNN_FUNCTIONS(F) \
  F(cudnnCreate)                   \
  F(cudnnDestroy)                  \
  F(cudnnSetStream)                \
  F(cudnnGetVersion)               \
  F(cudnnGetErrorString)           \
  F(cudnnGetLastErrorString)       \
  F(cudnnBackendCreateDescriptor)  \
  F(cudnnBackendDestroyDescriptor) \
  F(cudnnBackendSetAttribute)      \
  F(cudnnBackendGetAttribute)      \
  F(cudnnBackendFinalize)          \
  F(cudnnBackendExecute)

#define TRIREME_CUBLASLT_FUNCTIONS(F)     \
  F(cublasLtCreate)                       \
  F(cublasLtDestroy)                      \
  F(cublasLtGetVersion)                   \
  F(cublasLtGetStatusString)              \
  F(cublasLtMatmulDescCreate)             \
  F(cublasLtMatmulDescDestroy)            \
  F(cublasLtMatmulDescSetAttribute)       \
  F(cublasLtMatrixLayoutCreate)           \
  F(cublasLtMatrixLayoutDestroy)          \
  F(cublasLtMatmulPreferenceCreate)       \
  F(cublasLtMatmulPreferenceDestroy)      \
  F(cublasLtMatmulPreferenceSetAttribute) \
  F(cublasLtMatmulAlgoGetHeuristic)       \
  F(cublasLtMatmul)

// Functions by their own names; open until the process ends. Thread-safe.
struct Libraries {
#define TRIREME_MEMBER(name) decltype(&::name) name = nullptr;
  TRIREME_CUDNN_FUNCTIONS(TRIREME_MEMBER)
  TRIREME_CUBLASLT_FUNCTIONS(TRIREME_MEMBER)
#undef TRIREME_MEMBER

  std::string cudnn_version, cublaslt_version;  // 9.19.0

  // Throw Error with the call and what the library says of it.
  void Check(cudnnStatus_t status, std::string_view call) const;
  void Check(cublasStatus_t status, std::string_view call) const;
};

// Throws Error that says in one line which library is missing and what to install.
std::shared_ptr<const Libraries> OpenLibraries();

}  // namespace trireme::cuda
