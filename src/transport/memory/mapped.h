#pragma once
#include <memory>
#include <string>

#include "transport/memory/image.h"

namespace trireme {

// The way `mapped`: a client in a process that maps the box's memory. It fills its slot and reads
// regions where they are; only words go to the box and back. An Error where the box has too many
// clients.
std::unique_ptr<Memory> ConnectMapped(std::shared_ptr<MemoryImage> image, double timeout_s);
// The same for a box with a file (--file), on its machine and among its processes (PID namespace).
std::unique_ptr<Memory> ConnectMappedFile(const std::string& path, double timeout_s);

}  // namespace trireme
