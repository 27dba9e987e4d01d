#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/team.h"
#include "transport/memory/changes.h"
#include "transport/memory/extents.h"
#include "transport/memory/image.h"

namespace trireme {

// A region as it was at one moment.
struct RegionCopy {
  struct Head {
    char name[kMostRegionName + 1] = {};
    RegionType type = RegionType::kF32;
    uint32_t notes = 0;
    uint64_t length = 0, version = 0;
  } head;
  std::vector<std::byte> values;
  std::vector<RingEntry> notes;  // oldest first, of the newest versions
};

// What the words of clients do to an image, whichever way they came. Thread-safe.
class MemoryStore {
 public:
  MemoryStore(std::shared_ptr<MemoryImage> image, int threads, double timeout_s);

  // Answers anything; what cannot be done is refused and counted. A change whose number was
  // answered before is not made again.
  Reply Do(uint32_t session, const Word& word);

  // A session for a client that comes by a wire; an Error where there are too many.
  uint32_t BeginSession(uint64_t client);
  std::optional<uint32_t> FindSession(uint64_t client) const;
  void EndSession(uint32_t session);
  void EndDead();  // mapped clients whose process is gone

  // Room in the session's slot for so many bytes: where it is. Throws Error.
  std::span<std::byte> Slot(uint32_t session, uint64_t bytes);

  // The same for what the word brings, as large as its region, so that a put can swap both.
  std::span<std::byte> SlotFor(uint32_t session, const Word& word, uint64_t bytes);
  RegionRecord& Known(uint32_t region) const;  // throws Error

  // For snapshots.
  uint32_t CountRegions() const;
  void CopyRegion(uint32_t region, RegionCopy& copy) const;
  void RestoreRegion(const RegionCopy& copy);  // throws Error

  // Who reads the region of a session keeps others from changing it; see ReadLock.
  MemoryImage& image() { return *image_; }

  struct RegionFacts {
    std::string name;
    RegionType type = RegionType::kF32;
    uint64_t length = 0, version = 0;
    bool locked = false;
  };
  struct Facts {
    std::vector<RegionFacts> regions;
    int clients = 0;
    uint64_t used = 0, size = 0;  // bytes
    uint64_t changes = 0, refused = 0, incarnation = 0;
  };
  Facts Look() const;
  void Refuse() { image_->header().refused.fetch_add(1, std::memory_order_relaxed); }

 private:
  Reply Execute(uint32_t session, const Word& word);
  Reply Change(uint32_t session, const Word& word);
  void CheckGuard(const Word& word) const;
  Reply Create(const Word& word);
  Reply LockWord(uint32_t session, const Word& word);
  std::optional<uint32_t> Find(std::string_view name) const;
  std::span<std::byte> SlotOf(uint32_t session, uint64_t bytes);

  const std::shared_ptr<MemoryImage> image_;
  Team team_;
  mutable std::mutex mutex_;  // guards what changes, and the team
  Extents extents_;
  Changes changes_;
};

// Holds a region still for a client that reads it. `held` says whether its values are all of one
// version, when they have been read.
class ReadLock {
 public:
  // Waits for a change that is under way; PeerLost at the deadline, or where the session has ended.
  ReadLock(MemoryImage& image, uint32_t session, uint64_t client, uint32_t region,
           Deadline deadline);
  ~ReadLock() { Release(); }
  ReadLock(const ReadLock&) = delete;
  ReadLock& operator=(const ReadLock&) = delete;

  bool Wanted() const;  // somebody waits to change the region
  bool Release();       // false: the box gave the region away meanwhile

 private:
  MemoryImage& image_;
  SessionRecord& session_;
  RegionRecord& region_;
  const uint64_t mark_;
  bool held_ = false;
};

}  // namespace trireme
