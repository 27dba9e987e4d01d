#pragma once
#include <memory>

#include "engine/cuda/device.h"
#include "flat/device_group.h"

namespace trireme::cuda {

// Groups of cards by NCCL, which is opened when somebody asks for one. The device outlives it.
std::unique_ptr<DeviceGroups> MakeGroups(CudaDevice& device);

// What doctor says of it: its version, or what is missing.
std::string NcclText();

}  // namespace trireme::cuda
