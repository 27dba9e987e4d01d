#pragma once
#include "flat/device.h"

namespace trireme {

// What a device promises, whichever it is, but for its table (flat/table_check.h): memory, copies,
// queues, events (GoogleTest expectations).
void CheckDevice(Device& device);

}  // namespace trireme
