#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace trireme {

class SharedMemory;

// Bytes on their way, as a transport knows them.
class Transfer {
 public:
  virtual void Wait() = 0;  // throws PeerLost
  // Waits, or takes the bytes back where the group is finished. The object is the transport's
  // again afterwards.
  virtual void Finish() noexcept = 0;

 protected:
  ~Transfer() = default;
};

// The bytes stay alive and untouched until the ticket is done. ~Ticket waits, so an exception
// cannot free memory that is still being read or written. Must not outlive its group.
class Ticket {
 public:
  Ticket() = default;
  explicit Ticket(Transfer* transfer) : transfer_(transfer) {}
  Ticket(Ticket&& other) noexcept : transfer_(std::exchange(other.transfer_, nullptr)) {}
  Ticket& operator=(Ticket&& other) noexcept {
    if (this != &other) {
      Finish();
      transfer_ = std::exchange(other.transfer_, nullptr);
    }
    return *this;
  }
  ~Ticket() { Finish(); }

  void Wait() {
    if (!transfer_) return;
    transfer_->Wait();
    Finish();
  }

 private:
  void Finish() noexcept {
    if (Transfer* t = std::exchange(transfer_, nullptr)) t->Finish();
  }
  Transfer* transfer_ = nullptr;
};

// A stream between two ranks. Each concurrent user of a group has a tag of its own, below kTags.
using Tag = int;
constexpr Tag kTags = 64;

// What a rank sent and received, since the start.
struct Volume {
  uint64_t sent = 0, received = 0;  // bytes
};

// What a PeerLost of `rank` says.
std::string LostText(int rank, int size, int lost, std::string_view reason);

// A Group carries bytes between ranks that advance together.
//
// Order:   same sender, receiver and tag arrive in the order sent.
// Lengths: a receive names exactly the bytes that its send carries; anything else is an error.
// Buffers: none. A send may be done only when its receive is posted: post both, then wait.
// Threads: any thread may call any method.
// Failure: a lost member, also one silent beyond the deadline (transport.timeout_s), makes every
//          pending and later call throw PeerLost that names it. The group is then finished.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  virtual Ticket Send(int to, Tag tag, std::span<const std::byte> bytes) = 0;
  virtual Ticket Receive(int from, Tag tag, std::span<std::byte> bytes) = 0;

  // Wakes every waiting call, here and on the peers; they throw PeerLost with `reason`.
  virtual void Abort(std::string_view reason) noexcept = 0;

  virtual Volume volume() const = 0;

  // Seconds since anything was heard from a member that should be heard every second, wanted or
  // not; 0 where a transport cannot tell. For a watchdog: it says whether the wire is to blame.
  virtual double silent_s(int /*peer*/) const { return 0; }

  // The transport's own sum over all members, where it has one (false: it has none; nothing was
  // done). All call it, in the same order.
  virtual bool NativeSum(std::span<float> values);

  // Memory that all members address; null where there is none.
  virtual SharedMemory* shared_memory() { return nullptr; }

  // Every member calls it, with the colour of the part it goes to; in a part ranks are ordered by
  // `key`, equal keys by their rank here. The part lives no longer than this group, and losing a
  // member of it ends all.
  std::unique_ptr<Group> Split(int colour, int key = 0);

 protected:
  // The group that carries the bytes, and its rank for a member of this one.
  virtual Group& root() { return *this; }
  virtual int root_rank(int member) const { return member; }

 private:
  int scopes_ = 1;  // of a root: groups that this rank has seen; numbers the tags of parts
};

}  // namespace trireme
