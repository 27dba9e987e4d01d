#pragma once
#include <cuda_runtime_api.h>

#include <string_view>

namespace trireme::cuda {

// Throws Error with the call and what CUDA says of it. A fault of work that was enqueued earlier
// can show up in any later call: the message then says so.
void Check(cudaError_t status, std::string_view call);

// Of the kernels that were just launched: whether they could be.
void CheckLaunch(std::string_view kernel);

}  // namespace trireme::cuda
