#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "transport/deadline.h"
#include "transport/group.h"

namespace trireme {

enum class RegionType : uint32_t { kF32 = 1, kI64 };

constexpr size_t ValueBytes(RegionType type) { return type == RegionType::kF32 ? 4 : 8; }
const char* NameOf(RegionType type);  // f32, i64

constexpr size_t kMostRegionName = 63;  // bytes
constexpr size_t kMostNote = 256;       // bytes
constexpr uint64_t kKeptNotes = 1024;   // of a region: the newest

// Named values in a box. As Create and Open gave it: for the Memory that did.
struct Region {
  int number = -1;
  RegionType type = RegionType::kF32;
  uint64_t length = 0;       // values
  uint64_t incarnation = 0;  // of the box when it was opened
};

// How much of it a program needs, in bytes.
struct MemoryRoom {
  size_t regions = 0;  // with their rings
  size_t slots = 0;    // of clients: in a box
};

// What a change of a region left in its ring: the change that made `version`.
struct RegionNote {
  uint64_t version = 0;
  uint64_t client = 0;  // whose change it was (Memory::client)
  uint64_t number = 0;  // of the change among those of this client, from 1 up
  std::vector<std::byte> note;
};

// A number of an i64 region that a change depends on: see Memory::Accumulate.
struct MemoryGuard {
  Region region;
  uint64_t index = 0;
  int64_t expected = 0;
};

// The number was another one, so nothing has changed.
class GuardChanged : public Error {
 public:
  using Error::Error;
};

// The box has lost its contents since a region was opened, or has gone back to a snapshot. What
// this Memory knew is void; its regions can be created and opened again.
class MemoryRenewed : public PeerLost {
 public:
  using PeerLost::PeerLost;
};

// Memory that processes share without sharing an address space: a box keeps it (MemoryBox), and
// each client has a Memory, whatever the way to the box.
//
// Changes: Put, Accumulate, FetchAdd and CompareSwap are one change each: nobody sees half of one
//          (of a striped region: of a stripe), it counts the region's version up by one, and
//          (client, number, note) joins the ring of notes with it. A client that dies inside a
//          change has changed nothing or all. A change is done once, also where its word had to be
//          said again because the way was cut or the box was killed and came back.
// Order:   changes of one Memory happen in the order of the calls.
// Tickets: the bytes stay alive and untouched until the ticket is done; a ticket must not outlive
//          its Memory. `version`, if given, is written by then.
// Threads: any thread may call any method.
// Failure: a box that has not answered for timeout_s makes calls and tickets throw PeerLost, one
//          that came back without its contents MemoryRenewed. What the box refuses (another shape,
//          a place beyond the region, values that are not finite, no room) is an Error that names
//          the region; nothing has changed then, and the Memory goes on.
class Memory {
 public:
  virtual ~Memory() = default;

  // Opens the region, after making it, all zero, where there is none of this name. A region of
  // this name with another type or length is an Error that says both.
  virtual Region Create(std::string_view name, RegionType type, uint64_t length) = 0;
  // Waits for somebody to create it; an Error at the deadline.
  virtual Region Open(std::string_view name, Deadline deadline) = 0;

  // Values [offset, offset + values.size()) of the region.
  Ticket Put(const Region& region, uint64_t offset, std::span<const float> values,
             std::span<const std::byte> note = {}, uint64_t* version = nullptr) {
    return PutBytes(region, RegionType::kF32, offset, std::as_bytes(values), note, version);
  }
  Ticket Put(const Region& region, uint64_t offset, std::span<const int64_t> values,
             std::span<const std::byte> note = {}, uint64_t* version = nullptr) {
    return PutBytes(region, RegionType::kI64, offset, std::as_bytes(values), note, version);
  }
  // All values as of one version of the region (striped: of each stripe).
  Ticket Get(const Region& region, uint64_t offset, std::span<float> values,
             uint64_t* version = nullptr) {
    return GetBytes(region, RegionType::kF32, offset, std::as_writable_bytes(values), version);
  }
  Ticket Get(const Region& region, uint64_t offset, std::span<int64_t> values,
             uint64_t* version = nullptr) {
    return GetBytes(region, RegionType::kI64, offset, std::as_writable_bytes(values), version);
  }
  // region += values. Values that are not finite are refused. `version`: that this add made.
  // `guard`, if given: only while its number is the expected one, which the box looks at in the
  // same change; else the ticket throws GuardChanged.
  virtual Ticket Accumulate(const Region& region, uint64_t offset, std::span<const float> values,
                            std::span<const std::byte> note = {}, uint64_t* version = nullptr,
                            const MemoryGuard* guard = nullptr) = 0;

  // Of an i64 region; both return what was there before. CompareSwap writes `wanted` only where
  // that was `expected`; it is a change in both cases.
  virtual int64_t FetchAdd(const Region& region, uint64_t index, int64_t amount) = 0;
  virtual int64_t CompareSwap(const Region& region, uint64_t index, int64_t expected,
                              int64_t wanted) = 0;

  // Until the region has reached `version`. Returns the version that it has: less at the deadline.
  virtual uint64_t Wait(const Region& region, uint64_t version, Deadline deadline) = 0;
  // What made the versions after `version`, oldest first, at most `most`. An Error where the ring
  // no longer keeps all of them (kKeptNotes). Of a striped region: those of the first stripe, which
  // an add reaches last.
  virtual std::vector<RegionNote> Notes(const Region& region, uint64_t version,
                                        size_t most = kKeptNotes) = 0;

  // A region's lock belongs to one client at a time, and ends with its session: soon after its
  // process has died, or has been cut off for longer than timeout_s. It guards nothing by itself.
  // False: somebody else had it until the deadline. An owner may not lock it again.
  virtual bool Lock(const Region& region, Deadline deadline) = 0;
  virtual void Unlock(const Region& region) = 0;

  virtual uint64_t client() const = 0;       // this one's number, never 0
  virtual uint64_t incarnation() const = 0;  // of the box: others mean other contents
  virtual std::string way() const = 0;       // for the user: "mapped", "tcp to 10.0.0.1:7200"
  virtual Volume volume() const = 0;         // values only
  // The job ends with any of its clients, and so does what lies here: none has to be waited for.
  virtual bool one_fate() const { return false; }

 protected:
  virtual Ticket PutBytes(const Region& region, RegionType type, uint64_t offset,
                          std::span<const std::byte> values, std::span<const std::byte> note,
                          uint64_t* version) = 0;
  virtual Ticket GetBytes(const Region& region, RegionType type, uint64_t offset,
                          std::span<std::byte> values, uint64_t* version) = 0;
};

}  // namespace trireme
