#include "transport/mpi/window.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/start_thread.h"
#include "flat/cpu/loops.h"
#include "transport/memory/image.h"
#include "transport/memory/striped.h"
#include "transport/memory/word.h"
#include "transport/memory/word_memory.h"
#include "transport/mpi/patience.h"

namespace trireme {
namespace {

// What lies in a part: numbers of 8 bytes.
constexpr uint64_t kMostOfPart = 256;  // regions

struct PartHeader {
  int64_t next, serving;  // turns to make a region
  int64_t regions;        // that are there; written last
  int64_t end;            // of what is taken
  int64_t zero[4];
};
struct PartRegion {
  int64_t length, type, data, ring;
  char name[kMostRegionName + 1];
  // What others may change at any time.
  int64_t version;
  int64_t next, serving;  // turns to change it, or to read it as of one version
  int64_t owner;          // of its lock: a client, or 0
};
static_assert(sizeof(PartHeader) == 64 && sizeof(PartRegion) == 128);
constexpr size_t kFixedBytes = offsetof(PartRegion, version);

constexpr uint64_t kHeaderBytes = sizeof(PartHeader) + kMostOfPart * sizeof(PartRegion);
constexpr uint64_t kRingBytes = kKeptNotes * sizeof(RingEntry);
static_assert(sizeof(RingEntry) % sizeof(int64_t) == 0);
constexpr auto kProgressPause =
    std::chrono::microseconds(200);       // between looks for what others want
constexpr size_t kPieceValues = 1 << 20;  // of a call: others get their turn of MPI in between

constexpr uint64_t PlaceOf(int region) {
  return sizeof(PartHeader) + uint64_t(region) * sizeof(PartRegion);
}
constexpr uint64_t RoundUp(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

// One rank's part, as a client of this process sees it.
class MpiWindow::Part final : public Memory {
 public:
  Part(const MpiWindow& window, int rank) : window_(window), rank_(rank) {}

  Region Create(std::string_view name, RegionType type, uint64_t length) override {
    CheckName(name);
    std::lock_guard lock(mutex_);
    if (const auto found = Find(name)) return Same(*found, type, length);
    const Turn turn(*this, offsetof(PartHeader, next));
    if (const auto found = Find(name)) return Same(*found, type, length);
    return Make(name, type, length);
  }

  Region Open(std::string_view name, Deadline deadline) override {
    CheckName(name);
    for (Patience patience;; patience.Pause()) {
      {
        std::lock_guard lock(mutex_);
        if (const auto found = Find(name)) return RegionOf(*found);
      }
      if (After(0) >= deadline) throw Error("the MPI window has no region '{}'", name);
    }
  }

  Ticket Accumulate(const Region& region, uint64_t offset, std::span<const float> values,
                    std::span<const std::byte> note, uint64_t* version,
                    const MemoryGuard* guard) override {
    std::lock_guard lock(mutex_);
    const PartRegion& known = Known(region);
    CheckPlace(known.name, region.type, region.length, RegionType::kF32, offset, values.size());
    CheckNote(note.size());
    if (!values.empty() && !std::isfinite(loops::Largest(values.data(), values.size()))) {
      throw Error("an add to region '{}' has values that are not finite", known.name);
    }
    if (guard) {
      const PartRegion& numbers = Known(guard->region);
      CheckPlace(numbers.name, guard->region.type, guard->region.length, RegionType::kI64,
                 guard->index, 1);
    }
    const Turn turn(*this, TurnOf(region));
    if (guard) CheckGuard(*guard);
    Change(TRIREME_MPI_ADD_F32, uint64_t(known.data) + offset * sizeof(float), values.data(),
           values.size());
    Count(region, note, version);
    sent_ += values.size_bytes();
    return {};
  }

  int64_t FetchAdd(const Region& region, uint64_t index, int64_t amount) override {
    std::lock_guard lock(mutex_);
    const uint64_t at = NumberAt(region, index);
    const Turn turn(*this, TurnOf(region));
    const int64_t before = Add(at, amount);
    Count(region, {}, nullptr);
    return before;
  }
  int64_t CompareSwap(const Region& region, uint64_t index, int64_t expected,
                      int64_t wanted) override {
    std::lock_guard lock(mutex_);
    const uint64_t at = NumberAt(region, index);
    const Turn turn(*this, TurnOf(region));
    const int64_t before = Add(at, 0);
    if (before == expected) Change(TRIREME_MPI_PUT_I64, at, &wanted, 1);
    Count(region, {}, nullptr);
    return before;
  }

  uint64_t Wait(const Region& region, uint64_t version, Deadline deadline) override {
    {
      std::lock_guard lock(mutex_);
      Known(region);
    }
    const uint64_t at = FieldOf(region, offsetof(PartRegion, version));
    for (Patience patience;; patience.Pause()) {
      const auto now = uint64_t(Add(at, 0));
      if (now >= version || After(0) >= deadline) return now;
    }
  }

  std::vector<RegionNote> Notes(const Region& region, uint64_t version, size_t most) override {
    std::lock_guard lock(mutex_);
    const PartRegion& known = Known(region);
    if (!keeps_notes()) throw Error("{} keeps no notes of region '{}'", way(), known.name);
    const Turn turn(*this, TurnOf(region));
    const auto newest = uint64_t(Add(FieldOf(region, offsetof(PartRegion, version)), 0));
    CheckKept(known.name, version, newest);
    std::vector<RingEntry> entries(std::min<uint64_t>(most, newest - std::min(version, newest)));
    for (size_t i = 0; i < entries.size(); ++i) {
      Call("MPI_Get", [&](const TriremeMpiTable& mpi) {
        return mpi.window_read(rank_, RingAt(known, version + 1 + i), &entries[i],
                               sizeof(RingEntry));
      });
    }
    Flush();
    std::vector<RegionNote> notes;
    for (const RingEntry& entry : entries) notes.push_back(NoteOf(entry));
    return notes;
  }

  bool Lock(const Region& region, Deadline deadline) override {
    for (Patience patience;; patience.Pause()) {
      {
        std::lock_guard lock(mutex_);
        Known(region);
        const uint64_t at = FieldOf(region, offsetof(PartRegion, owner));
        const Turn turn(*this, TurnOf(region));
        if (Add(at, 0) == 0) {
          const auto own = int64_t(client_);
          Change(TRIREME_MPI_PUT_I64, at, &own, 1);
          Flush();
          return true;
        }
      }
      if (After(0) >= deadline) return false;
    }
  }
  void Unlock(const Region& region) override {
    std::lock_guard lock(mutex_);
    const PartRegion& known = Known(region);
    const uint64_t at = FieldOf(region, offsetof(PartRegion, owner));
    const Turn turn(*this, TurnOf(region));
    const int64_t owner = Add(at, 0), nobody = 0;
    if (owner != 0 && owner != int64_t(client_)) {
      throw Error("another client has the lock of region '{}'", known.name);
    }
    Change(TRIREME_MPI_PUT_I64, at, &nobody, 1);
    Flush();
  }

  uint64_t client() const override { return client_; }
  uint64_t incarnation() const override { return 1; }  // it lives as long as the job
  std::string way() const override { return fmt::format("the MPI window of rank {}", rank_); }
  Volume volume() const override { return {sent_.load(), received_.load()}; }
  bool one_fate() const override { return true; }

 protected:
  Ticket PutBytes(const Region& region, RegionType type, uint64_t offset,
                  std::span<const std::byte> values, std::span<const std::byte> note,
                  uint64_t* version) override {
    std::lock_guard lock(mutex_);
    const PartRegion& known = Known(region);
    const uint64_t size = ValueBytes(type), count = values.size() / size;
    CheckPlace(known.name, region.type, region.length, type, offset, count);
    CheckNote(note.size());
    const Turn turn(*this, TurnOf(region));
    Change(type == RegionType::kI64 ? TRIREME_MPI_PUT_I64 : TRIREME_MPI_PUT_F32,
           uint64_t(known.data) + offset * size, values.data(), count);
    Count(region, note, version);
    sent_ += values.size();
    return {};
  }

  Ticket GetBytes(const Region& region, RegionType type, uint64_t offset,
                  std::span<std::byte> values, uint64_t* version) override {
    std::lock_guard lock(mutex_);
    const PartRegion& known = Known(region);
    const uint64_t size = ValueBytes(type);
    CheckPlace(known.name, region.type, region.length, type, offset, values.size() / size);
    const Turn turn(*this, TurnOf(region));
    const int64_t now = Add(FieldOf(region, offsetof(PartRegion, version)), 0);
    Read(uint64_t(known.data) + offset * size, values);
    if (version) *version = uint64_t(now);
    received_ += values.size();
    return {};
  }

 private:
  // Whoever has the turn of a place: numbers are drawn at `next`, and `serving` behind it says
  // whose turn it is. What was changed in it must be flushed before it ends.
  class Turn {
   public:
    Turn(Part& part, uint64_t next) : part_(part), serving_(next + sizeof(int64_t)) {
      const int64_t own = part.Add(next, 1);
      const Deadline deadline = After(part.window_.timeout_s_);
      for (Patience patience; part.Add(serving_, 0) != own; patience.Pause()) {
        if (After(0) < deadline) continue;
        part.window_.group_.Abort(
            fmt::format("a region of {} has been another rank's for {:g} s (transport.timeout_s)",
                        part.way(), part.window_.timeout_s_));
        part.CheckGroup();
      }
    }
    ~Turn() {
      try {
        part_.Add(serving_, 1);
      } catch (const std::exception&) {  // the job is over, and whoever waits hears of that
      }
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Part& part_;
    const uint64_t serving_;
  };

  // ---- MPI, one call at a time

  template <class Fn>
  void Call(const char* what, Fn fn) {
    MpiTurn turn(window_.group_.turns(), MpiTurn::kCaller);
    if (const auto loss = window_.group_.Loss()) throw PeerLost("{}", *loss);
    window_.library_.Check(fn(window_.library_.table()), what);
  }
  void CheckGroup() {
    MpiTurn turn(window_.group_.turns(), MpiTurn::kCaller);
    if (const auto loss = window_.group_.Loss()) throw PeerLost("{}", *loss);
  }
  int64_t Add(uint64_t at, int64_t amount) {
    int64_t before = 0;
    Call("MPI_Fetch_and_op",
         [&](const TriremeMpiTable& mpi) { return mpi.window_count(rank_, at, amount, &before); });
    return before;
  }
  void Flush() {
    Call("MPI_Win_flush", [&](const TriremeMpiTable& mpi) { return mpi.window_flush(rank_); });
  }
  // The values stay where they are until a flush.
  void Change(int kind, uint64_t at, const void* values, uint64_t count) {
    const size_t size = kind == TRIREME_MPI_PUT_I64 ? sizeof(int64_t) : sizeof(float);
    for (uint64_t done = 0; done < count; done += kPieceValues) {
      const auto piece = int(std::min<uint64_t>(kPieceValues, count - done));
      Call("MPI_Accumulate", [&](const TriremeMpiTable& mpi) {
        const auto* const from = static_cast<const std::byte*>(values) + done * size;
        return mpi.window_change(rank_, at + done * size, from, piece, kind);
      });
    }
  }
  void Read(uint64_t at, std::span<std::byte> into) {
    constexpr size_t kAtATime = kPieceValues * sizeof(float);
    for (size_t done = 0; done < into.size(); done += kAtATime) {
      const size_t piece = std::min(kAtATime, into.size() - done);
      Call("MPI_Get", [&](const TriremeMpiTable& mpi) {
        const int error = mpi.window_read(rank_, at + done, into.data() + done, int(piece));
        return error != 0 ? error : mpi.window_flush(rank_);
      });
    }
  }

  // ---- regions

  // Of a striped region the notes are the first stripe's.
  bool keeps_notes() const { return rank_ == 0; }

  // What is new is read: a region does not change its place. With the mutex.
  std::optional<int> Find(std::string_view name) {
    const int64_t there = Add(offsetof(PartHeader, regions), 0);
    while (int64_t(regions_.size()) < there) {
      PartRegion region{};
      const auto bytes = std::as_writable_bytes(std::span(&region, 1));
      Read(PlaceOf(int(regions_.size())), bytes.first(kFixedBytes));
      regions_.push_back(region);
    }
    for (size_t r = 0; r < regions_.size(); ++r) {
      if (name == regions_[r].name) return int(r);
    }
    return {};
  }
  Region RegionOf(int number) const {
    const PartRegion& known = regions_[size_t(number)];
    return {number, RegionType(known.type), uint64_t(known.length), incarnation()};
  }
  Region Same(int number, RegionType type, uint64_t length) const {
    const Region found = RegionOf(number);
    if (found.type == type && found.length == length) return found;
    throw Error("region '{}' has {} {} values, not {} {}", regions_[size_t(number)].name,
                found.length, NameOf(found.type), length, NameOf(type));
  }
  Region Make(std::string_view name, RegionType type, uint64_t length) {
    if (length == 0) throw Error("region '{}' must have at least 1 value", name);
    if (regions_.size() == kMostOfPart) {
      throw Error("{} has {} regions already", way(), kMostOfPart);
    }
    const auto end = uint64_t(Add(offsetof(PartHeader, end), 0));
    const uint64_t begin = std::max(end, kHeaderBytes);
    const uint64_t size = ValueBytes(type), ring = keeps_notes() ? kRingBytes : 0;
    const uint64_t bytes = window_.BytesOf(rank_), room = bytes > begin ? bytes - begin : 0;
    if (length > room / size || RoundUp(length * size) + ring > room) {
      throw Error("{} has no room for region '{}' of {} {} values", way(), name, length,
                  NameOf(type));
    }
    PartRegion region{.length = int64_t(length),
                      .type = int64_t(type),
                      .data = int64_t(begin),
                      .ring = int64_t(begin + RoundUp(length * size)),
                      .name = {},
                      .version = 0,
                      .next = 0,
                      .serving = 0,
                      .owner = 0};
    std::memcpy(region.name, name.data(), name.size());
    const std::vector<int64_t> zeros(std::min<uint64_t>(kPieceValues, RoundUp(length * size) / 8));
    for (auto at = uint64_t(region.data); at < uint64_t(region.ring); at += zeros.size() * 8) {
      Change(TRIREME_MPI_PUT_I64, at, zeros.data(),
             std::min<uint64_t>(zeros.size(), (uint64_t(region.ring) - at) / 8));
    }
    const auto number = int(regions_.size());
    Change(TRIREME_MPI_PUT_I64, PlaceOf(number), &region, sizeof(region) / sizeof(int64_t));
    Flush();
    Add(offsetof(PartHeader, end), region.ring + int64_t(ring) - int64_t(end));
    Add(offsetof(PartHeader, regions), 1);  // all of it is there
    regions_.push_back(region);
    return RegionOf(number);
  }

  const PartRegion& Known(const Region& region) const {
    if (region.number < 0 || size_t(region.number) >= regions_.size()) {
      throw Error("region {} was not opened in this memory", region.number);
    }
    return regions_[size_t(region.number)];
  }
  static uint64_t FieldOf(const Region& region, size_t field) {
    return PlaceOf(region.number) + field;
  }
  static uint64_t TurnOf(const Region& region) {
    return FieldOf(region, offsetof(PartRegion, next));
  }
  static uint64_t RingAt(const PartRegion& region, uint64_t version) {
    return uint64_t(region.ring) + version % kKeptNotes * sizeof(RingEntry);
  }
  uint64_t NumberAt(const Region& region, uint64_t index) const {
    const PartRegion& known = Known(region);
    CheckPlace(known.name, region.type, region.length, RegionType::kI64, index, 1);
    return uint64_t(known.data) + index * sizeof(int64_t);
  }

  // Who moves the number and then takes this region's turn finds what was added before.
  void CheckGuard(const MemoryGuard& guard) {
    const int64_t is = Add(NumberAt(guard.region, guard.index), 0);
    if (is == guard.expected) return;
    throw GuardChanged("number {} of region '{}' is {}, not {}", guard.index,
                       Known(guard.region).name, is, guard.expected);
  }

  // The rest of a change: the next version, and its note. Whoever sees the version before all is
  // there reads in a later turn.
  void Count(const Region& region, std::span<const std::byte> note, uint64_t* version) {
    const uint64_t at = FieldOf(region, offsetof(PartRegion, version));
    const auto made = uint64_t(Add(at, 1)) + 1;
    ++changes_;
    RingEntry entry{.version = made,
                    .client = client_,
                    .number = changes_,
                    .note_bytes = uint32_t(note.size()),
                    .zero = 0,
                    .note = {}};
    std::ranges::copy(note, entry.note);
    const uint64_t words = (offsetof(RingEntry, note) + note.size() + 7) / sizeof(int64_t);
    if (keeps_notes()) Change(TRIREME_MPI_PUT_I64, RingAt(Known(region), made), &entry, words);
    Flush();
    if (version) *version = made;
  }

  const MpiWindow& window_;
  const int rank_;
  const uint64_t client_ = NewNumber() >> 1 | 1;  // a number with a sign carries it
  std::atomic<uint64_t> sent_ = 0, received_ = 0;
  std::mutex mutex_;                 // guards the rest: one change of this client at a time
  std::vector<PartRegion> regions_;  // by number, as they were made
  uint64_t changes_ = 0;
};

uint64_t MpiWindow::BytesOf(int rank) const {
  constexpr uint64_t kMoreRegions = 8;  // than ranks
  const auto ranks = uint64_t(group_.size());
  const uint64_t rings = std::min(kMostOfPart, ranks + kMoreRegions) * kRingBytes;
  return kHeaderBytes + RoundUp(bytes_ / ranks) + (rank == 0 ? rings : 0);
}

MpiWindow::MpiWindow(MpiGroup& group, const MpiLibrary& library, uint64_t bytes, double timeout_s)
    : group_(group), library_(library), bytes_(bytes), timeout_s_(timeout_s) {
  {
    MpiTurn turn(group_.turns(), MpiTurn::kCaller);
    const int error = library_.table().window_open(BytesOf(group_.rank()), kHeaderBytes);
    if (error != 0) {
      throw Error(
          "this MPI ({}) gives its ranks no memory in common: {}; start `trireme memory-box` and "
          "set transport.memory=HOST:PORT",
          library_.Name(), library_.Explain(error));
    }
  }
  thread_ = StartThread("the thread of an MPI window", [this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      {
        MpiTurn turn(group_.turns(), MpiTurn::kPoller);
        group_.Pass();
      }
      std::this_thread::sleep_for(kProgressPause);
    }
  });
}

MpiWindow::~MpiWindow() {
  thread_.request_stop();
  thread_.join();
  if (forgotten_) return;
  MpiTurn turn(group_.turns(), MpiTurn::kCaller);
  if (!group_.Loss()) library_.table().window_close();
}

std::unique_ptr<Memory> MpiWindow::Of(int rank) { return std::make_unique<Part>(*this, rank); }

std::unique_ptr<Memory> MpiWindow::OfAll() {
  std::vector<std::unique_ptr<Memory>> parts;
  for (int r = 0; r < group_.size(); ++r) parts.push_back(Of(r));
  return Stripe(std::move(parts), fmt::format("MPI windows of {} ranks", group_.size()));
}

}  // namespace trireme
