#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace trireme {

// What stands in front of everything that travels between two ranks, after the handshake.
enum class FrameKind : uint8_t {
  // Of a group's connection. `number` counts the messages of a tag in one direction.
  kEager = 1,  // a short message: its `length` bytes follow
  kAnnounce,   // a message of `length` bytes waits for its receive
  kReady,      // the receive of `length` bytes is posted
  kRefuse,     // the receive takes `length` bytes: another number than announced
  kData,       // `length` bytes of a message follow, beginning at `extra`
  kCredit,     // `length` more bytes may be sent without asking
  kCall,       // please connect our link
  kAbort,      // rank `tag` is lost: `length` bytes of text say why
  kGoodbye,    // the last frame: the rank has ended
  // Of a link's connection.
  kResume,   // the last message that arrived is `number`
  kMessage,  // number `number`, kind `tag`: `length` integers and `extra` floats follow
  kOffer,    // the same without a number
  kClose,    // the sender says no more: also numbered
  kAck,      // all up to `number` has arrived
  // Of both.
  kHeartbeat,
};

struct Frame {
  FrameKind kind = FrameKind::kHeartbeat;
  int32_t tag = 0;
  uint64_t number = 0, length = 0, extra = 0;
};

constexpr size_t kFrameBytes = 32;
using FrameBytes = std::array<std::byte, kFrameBytes>;

FrameBytes Encode(const Frame& frame);
std::optional<Frame> Decode(std::span<const std::byte, kFrameBytes> bytes);  // null: no frame

}  // namespace trireme
