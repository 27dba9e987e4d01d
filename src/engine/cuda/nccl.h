#pragma once
#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <string_view>

namespace trireme::cuda {

// What is called of NCCL 2, in declarations of our own: its header need not be there to build. They
// have not changed since 2.4, which brought the first of these functions.
struct NcclCommunicator;
struct NcclId {
  char bytes[128];
};
enum NcclStatus : int { kNcclSuccess = 0, kNcclInProgress = 7 };
constexpr int kNcclFloat32 = 7;  // ncclDataType_t
constexpr int kNcclSum = 0;      // ncclRedOp_t

// Functions by their own names; open until the process ends. Thread-safe.
struct Nccl {
  NcclStatus (*ncclGetVersion)(int* version) = nullptr;
  NcclStatus (*ncclGetUniqueId)(NcclId* id) = nullptr;
  NcclStatus (*ncclCommInitRank)(NcclCommunicator** communicator, int ranks, NcclId id,
                                 int rank) = nullptr;
  NcclStatus (*ncclAllReduce)(const void* from, void* to, size_t count, int type, int operation,
                              NcclCommunicator* communicator, cudaStream_t stream) = nullptr;
  NcclStatus (*ncclCommGetAsyncError)(NcclCommunicator* communicator, NcclStatus* error) = nullptr;
  NcclStatus (*ncclCommDestroy)(NcclCommunicator* communicator) = nullptr;
  NcclStatus (*ncclCommAbort)(NcclCommunicator* communicator) = nullptr;
  const char* (*ncclGetErrorString)(NcclStatus status) = nullptr;

  std::string version;  // 2.28.9

  void Check(NcclStatus status, std::string_view call) const;  // throws Error
};

// Throws Error that says in one line that it is missing and what to install.
std::shared_ptr<const Nccl> OpenNccl();

}  // namespace trireme::cuda
