#include "engine/cuda/libraries.h"

#include <dlfcn.h>

#include <vector>

#include "base/error.h"

#ifndef TRIREME_CUDA_LIBRARY_FOLDERS
#define TRIREME_CUDA_LIBRARY_FOLDERS ""  // where the libraries were found at build time
#endif

namespace trireme::cuda {
namespace {

struct Library {
  std::string name;     // for messages
  std::string file;     // as the loader knows it
  std::string install;  // what to do where it is missing
};

Library Cudnn() {
  return {"cuDNN 9", fmt::format("libcudnn.so.{}", CUDNN_MAJOR),
          fmt::format("install cudnn9-cuda-{} (NVIDIA's packages) or nvidia-cudnn-cu{} (pip)",
                      CUDART_VERSION / 1000, CUDART_VERSION / 1000)};
}

Library CublasLt() {
  return {"cuBLASLt", fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR),
          fmt::format("install libcublas-{}-{} (NVIDIA's packages) or nvidia-cublas (pip)",
                      CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10)};
}

// The loader's own search comes first, so that LD_LIBRARY_PATH decides.
void* Open(const Library& library) {
  std::vector<std::string> paths = {library.file};
  std::string_view folders = TRIREME_CUDA_LIBRARY_FOLDERS;
  while (!folders.empty()) {
    const std::string_view folder = folders.substr(0, folders.find(':'));
    paths.push_back(fmt::format("{}/{}", folder, library.file));
    folders.remove_prefix(std::min(folders.size(), folder.size() + 1));
  }
  std::string why;
  for (const std::string& path : paths) {
    if (void* const opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return opened;
    if (why.empty()) why = dlerror();
  }
  throw Error(
      "device cuda needs {}, which could not be opened ({}): {}, or name its folder in "
      "LD_LIBRARY_PATH",
      library.name, why, library.install);
}

template <class F>
void Find(void* opened, const Library& library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(opened, name));
  if (function) return;
  throw Error("device cuda needs a newer {}: {} has no {}; {}", library.name, library.file, name,
              library.install);
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
  const Library cudnn = Cudnn(), cublaslt = CublasLt();
  void* const cublaslt_opened = Open(cublaslt);
#define TRIREME_FIND(name) Find(cublaslt_opened, cublaslt, #name, found->name);
  TRIREME_CUBLASLT_FUNCTIONS(TRIREME_FIND)
#undef TRIREME_FIND
  void* const cudnn_opened = Open(cudnn);
#define TRIREME_FIND(name) Find(cudnn_opened, cudnn, #name, found->name);
  TRIREME_CUDNN_FUNCTIONS(TRIREME_FIND)
#undef TRIREME_FIND
  const size_t dnn = found->cudnnGetVersion(), blas = found->cublasLtGetVersion();
  found->cudnn_version = fmt::format("{}.{}.{}", dnn / 10000, dnn % 10000 / 100, dnn % 100);
  found->cublaslt_version = fmt::format("{}.{}.{}", blas / 10000, blas % 10000 / 100, blas % 100);
  return found;
}

}  // namespace trireme::cuda
