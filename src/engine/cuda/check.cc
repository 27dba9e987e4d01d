#include "engine/cuda/check.h"

#include "base/error.h"

namespace trireme::cuda {
namespace {

// After these the process cannot use its card any more, and no call says which kernel it was.
bool IsLateFault(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Check(cudaError_t status, std::string_view call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // or the next launch would report it again
  if (IsLateFault(status)) {
    throw Error(
        "{} reports a fault of work that was enqueued before it: {} ({}); --set engine.check=true "
        "waits for each operation and names the one that failed",
        call, cudaGetErrorString(status), cudaGetErrorName(status));
  }
  throw Error("{}: {} ({})", call, cudaGetErrorString(status), cudaGetErrorName(status));
}

void CheckLaunch(std::string_view kernel) { Check(cudaGetLastError(), kernel); }

}  // namespace trireme::cuda
