#pragma once
#include <span>

#include "flat/device.h"
#include "flat/device_group.h"

namespace trireme {

// A rank of a group: its device, and what makes groups of it.
struct GroupMember {
  Device& device;
  DeviceGroups& groups;
};

// What a device group promises, with these members (GoogleTest expectations). With a single one,
// what needs others is left out.
void CheckDeviceGroup(std::span<const GroupMember> members);

}  // namespace trireme
