#include "engine/cuda/target.h"

#include <fmt/core.h>

namespace trireme::cuda {

std::string TargetOf(const cudaDeviceProp& card, const Libraries& libraries) {
  return fmt::format("{} (sm_{}{}), CUDA {}.{}, cuDNN {}, cuBLASLt {}", card.name, card.major,
                     card.minor, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10,
                     libraries.cudnn_version, libraries.cublaslt_version);
}

}  // namespace trireme::cuda
