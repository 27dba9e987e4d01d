#include "engine/cuda/nccl.h"

#include "base/error.h"
#include "engine/cuda/opened.h"

namespace trireme::cuda {

void Nccl::Check(NcclStatus status, std::string_view call) const {
  if (status == kNcclSuccess) return;
  throw Error("{}: {} (NCCL {}; NCCL_DEBUG=WARN makes it say more)", call,
              ncclGetErrorString(status), version);
}

std::shared_ptr<const Nccl> OpenNccl() {
  auto found = std::make_shared<Nccl>();
  const OpenedLibrary nccl({"a sum between cards", "NCCL 2", "libnccl.so.2",
                            fmt::format("install libnccl2 (NVIDIA's packages) or nvidia-nccl-cu{} "
                                        "(pip)",
                                        CUDART_VERSION / 1000)});
#define TRIREME_FIND(name) nccl.Find(#name, found->name)
  TRIREME_FIND(ncclGetVersion);
  TRIREME_FIND(ncclGetUniqueId);
  TRIREME_FIND(ncclCommInitRank);
  TRIREME_FIND(ncclAllReduce);
  TRIREME_FIND(ncclCommGetAsyncError);
  TRIREME_FIND(ncclCommDestroy);
  TRIREME_FIND(ncclCommAbort);
  TRIREME_FIND(ncclGetErrorString);
#undef TRIREME_FIND
  int number = 0;
  found->Check(found->ncclGetVersion(&number), "ncclGetVersion");
  found->version = fmt::format("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100);
  return found;
}

}  // namespace trireme::cuda
