#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "strategy/server/protocol.h"

namespace trireme {

// What an add to a centre in remote memory says of itself, as a push does: whose it is, the head,
// and for which leases. There is little room (kMostNote), so leases are runs of ids.
struct CentreNote {
  int64_t client = 0;
  PushHead head;
  std::vector<int64_t> leases;
};

// A note with these leases can name one more.
bool HasRoomInNote(std::span<const int64_t> leases);
std::vector<std::byte> PackNote(const CentreNote& note);
std::optional<CentreNote> UnpackNote(std::span<const std::byte> bytes);  // nothing: it is none

}  // namespace trireme
