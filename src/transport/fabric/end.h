#pragma once
#include <memory>
#include <string>

#include "transport/memory/bulk.h"

namespace trireme {

// An end over libfabric: a provider as fi_info names it ("tcp;ofi_rxm", "shm"). See OpenBulk.
std::unique_ptr<BulkEnd> OpenFabricEnd(const std::string& provider, const std::string& host);

}  // namespace trireme
