// The plugin's half of the border.
#include "engine/cuda/plugin.h"

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <cstdlib>

#include "engine/cuda/check.h"
#include "engine/cuda/device.h"
#include "engine/cuda/engine.h"
#include "engine/cuda/group.h"
#include "engine/cuda/libraries.h"
#include "engine/cuda/speed.h"
#include "engine/cuda/target.h"

namespace trireme::cuda {
namespace {

std::string VersionText(int version) {  // 13000 is 13.0
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// Why there is no card, in words that say what to do.
std::string WhyNoCard(cudaError_t status, int driver) {
  if (driver == 0) {
    return "there is no NVIDIA driver (libcuda.so.1); install one, then nvidia-smi lists the cards";
  }
  if (status == cudaErrorInsufficientDriver) {
    return fmt::format(
        "the NVIDIA driver knows CUDA up to {}, the plugin was built with {}; update the driver, "
        "or "
        "build the plugin with an older CUDA toolkit (12.4 at least)",
        VersionText(driver), VersionText(CUDART_VERSION));
  }
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (status == cudaErrorNoDevice || status == cudaSuccess) {
    return fmt::format("the NVIDIA driver finds no card{}; nvidia-smi lists those there are",
                       visible ? fmt::format(" (CUDA_VISIBLE_DEVICES is \"{}\")", visible) : "");
  }
  return fmt::format("the NVIDIA driver gives no card: {} ({}); does nvidia-smi answer?",
                     cudaGetErrorString(status), cudaGetErrorName(status));
}

Card Describe(int index, const Libraries& libraries) {
  cudaDeviceProp properties = {};
  Check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  Card card{.name = properties.name, .memory_bytes = properties.totalGlobalMem};
  const int capability = properties.major * 10 + properties.minor;
  if (capability < TRIREME_CUDA_LOWEST) {
    card.problem = fmt::format(
        "{} has compute capability {}.{}, the plugin was built for {}.{} and newer; build it with "
        "-DTRIREME_CUDA_ARCHITECTURES=sm_{}",
        card.name, properties.major, properties.minor, TRIREME_CUDA_LOWEST / 10,
        TRIREME_CUDA_LOWEST % 10, capability);
  }
  card.target = TargetOf(properties, libraries);
  return card;
}

Survey LookAround() {
  Survey survey;
  int driver = 0, count = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    survey.problem = WhyNoCard(status, driver);
    survey.absent = driver == 0 || status == cudaErrorNoDevice || status == cudaSuccess;
    return survey;
  }
  const auto libraries = OpenLibraries();  // throws where one is missing
  survey.versions =
      fmt::format("driver for CUDA {}, plugin built with CUDA {}, cuDNN {}, cuBLASLt {}, {}",
                  VersionText(driver), VersionText(CUDART_VERSION), libraries->cudnn_version,
                  libraries->cublaslt_version, NcclText());
  for (int i = 0; i < count; ++i) survey.cards.push_back(Describe(i, *libraries));
  return survey;
}

std::unique_ptr<Device> MakeDevice(int card, const EngineOptions& options) {
  return std::make_unique<CudaDevice>(card, size_t(options.memory_mb) * 1'000'000);
}

std::unique_ptr<Engine> MakeEngineOn(Device& device, Precision precision,
                                     const EngineOptions& options) {
  return MakeEngine(static_cast<CudaDevice&>(device), precision, options);
}

std::unique_ptr<DeviceGroups> MakeGroupsOf(Device& device) {
  return MakeGroups(static_cast<CudaDevice&>(device));
}

double MeasureProductsOn(Device& device, Precision precision, double seconds) {
  return MeasureProducts(static_cast<CudaDevice&>(device), precision, seconds);
}

double MeasureCopyOn(Device& device, double seconds) {
  return MeasureCopy(static_cast<CudaDevice&>(device), seconds);
}

}  // namespace
}  // namespace trireme::cuda

extern "C" const trireme::cuda::Table* trireme_cuda_table() {
  using namespace trireme::cuda;
  static const Table table = {.version = Table::kVersion,
                              .bytes = sizeof(Table),
                              .build_id = BuildId(),
                              .survey = LookAround,
                              .make_device = MakeDevice,
                              .make_engine = MakeEngineOn,
                              .make_groups = MakeGroupsOf,
                              .measure_products = MeasureProductsOn,
                              .measure_copy = MeasureCopyOn};
  return &table;
}
