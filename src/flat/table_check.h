#pragma once
#include <cstddef>
#include <cstdint>

#include "flat/device.h"

namespace trireme {

// Runs every entry of the device's table on slices of n floats that begin `offset` floats into
// their memory, and compares with plain loops in double (GoogleTest expectations). What is said to
// be exact (a sum in order, copy, what is not finite) is compared bit for bit. Without `unwritten`:
// an engine of this device writes all gradients (Gradient::unwritten is empty).
void CheckTable(Device& device, size_t n, size_t offset, uint64_t seed, bool unwritten = true);

}  // namespace trireme
