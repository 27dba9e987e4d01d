#include "engine/cuda/libraries.h"

#include "base/error.h"
#include "engine/cuda/opened.h"

namespace trireme::cuda {
namespace {

LibraryFile Cudnn() {
  return {"device cuda", "cuDNN 9", fmt::format("libcudnn.so.{}", CUDNN_MAJOR),
          fmt::format("install cudnn9-cuda-{} (NVIDIA's packages) or nvidia-cudnn-cu{} (pip)",
                      CUDART_VERSION / 1000, CUDART_VERSION / 1000)};
}

LibraryFile CublasLt() {
  return {"device cuda", "cuBLASLt", fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR),
          fmt::format("install libcublas-{}-{} (NVIDIA's packages) or nvidia-cublas (pip)",
                      CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10)};
}

}  // namespace

void Libraries::Check(cudnnStatus_t status, std::string_view call) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char detail[512] = "";
  cudnnGetLastErrorString(detail, sizeof(detail));
  throw Error("{}: {}{}{}", call, cudnnGetErrorString(status), *detail ? ": " : "", detail);
}

void Libraries::Check(cublasStatus_t status, std::string_view call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error("{}: {}", call, cublasLtGetStatusString(status));
}

std::shared_ptr<const Libraries> OpenLibraries() {
  auto found = std::make_shared<Libraries>();
  const OpenedLibrary cublaslt(CublasLt());
#define TRIREME_FIND(name) cublaslt.Find(#name, found->name);
  TRIREME_CUBLASLT_FUNCTIONS(TRIREME_FIND)
#undef TRIREME_FIND
  const OpenedLibrary cudnn(Cudnn());
#define TRIREME_FIND(name) cudnn.Find(#name, found->name);
  TRIREME_CUDNN_FUNCTIONS(TRIREME_FIND)
#undef TRIREME_FIND
  const size_t dnn = found->cudnnGetVersion(), blas = found->cublasLtGetVersion();
  found->cudnn_version = fmt::format("{}.{}.{}", dnn / 10000, dnn % 10000 / 100, dnn % 100);
  found->cublaslt_version = fmt::format("{}.{}.{}", blas / 10000, blas % 10000 / 100, blas % 100);
  return found;
}

}  // namespace trireme::cuda
