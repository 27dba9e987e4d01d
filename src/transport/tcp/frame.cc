#include "transport/tcp/frame.h"

#include <bit>
#include <cstring>

namespace trireme {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers travel as they lie in memory");

struct WireFrame {
  uint16_t magic = 0x7254;
  FrameKind kind = FrameKind::kHeartbeat;
  uint8_t zero = 0;
  int32_t tag = 0;
  uint64_t number = 0, length = 0, extra = 0;
};
static_assert(sizeof(WireFrame) == kFrameBytes);

}  // namespace

FrameBytes Encode(const Frame& frame) {
  const WireFrame wire = {.kind = frame.kind,
                          .tag = frame.tag,
                          .number = frame.number,
                          .length = frame.length,
                          .extra = frame.extra};
  return std::bit_cast<FrameBytes>(wire);
}

std::optional<Frame> Decode(std::span<const std::byte, kFrameBytes> bytes) {
  WireFrame wire;
  std::memcpy(&wire, bytes.data(), kFrameBytes);
  const bool known = wire.kind >= FrameKind::kEager && wire.kind <= FrameKind::kHeartbeat;
  if (wire.magic != WireFrame().magic || wire.zero != 0 || !known) return {};
  return Frame{wire.kind, wire.tag, wire.number, wire.length, wire.extra};
}

}  // namespace trireme
