#include "transport/memory/store.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace trireme {
namespace {

std::string_view NameIn(const Word& word) {
  return {word.name, strnlen(word.name, sizeof(word.name))};
}

Reply About(uint32_t number, const RegionRecord& region) {
  return {.type = region.type,
          .region = number,
          .length = region.length,
          .version = region.version.load(std::memory_order_acquire)};
}

}  // namespace

MemoryStore::MemoryStore(std::shared_ptr<MemoryImage> image, int threads, double timeout_s)
    : image_(std::move(image)),
      team_(std::clamp(threads, 1, int(kMostThreads))),
      extents_(*image_),
      changes_(*image_, team_, timeout_s) {}

Reply MemoryStore::Do(uint32_t session, const Word& word) {
  std::lock_guard lock(mutex_);
  try {
    return Execute(session, word);
  } catch (const GuardChanged& error) {
    Reply answer{.verdict = Verdict::kGuarded};
    SetText(answer, error.what());
    return answer;
  } catch (const std::exception& error) {
    Reply answer{.verdict = Verdict::kRefused};
    SetText(answer, error.what());
    Refuse();
    return answer;
  }
}

Reply MemoryStore::Execute(uint32_t session, const Word& word) {
  switch (word.kind) {
    case WordKind::kCreate:
      return Create(word);
    case WordKind::kOpen: {
      const auto found = Find(NameIn(word));
      return found ? About(*found, image_->region(*found)) : Reply{};
    }
    case WordKind::kLock:
    case WordKind::kUnlock:
      return LockWord(session, word);
    case WordKind::kLeave:
      trireme::EndSession(*image_, session);
      return {};
    case WordKind::kSlot:
      SlotOf(session, word.length);
      return {};
    case WordKind::kPut:
    case WordKind::kAccumulate:
    case WordKind::kFetchAdd:
    case WordKind::kCompareSwap:
      return Change(session, word);
    default:
      throw Error("unknown word {} from a client of the memory box", uint32_t(word.kind));
  }
}

Reply MemoryStore::Change(uint32_t number, const Word& word) {
  SessionRecord& session = image_->session(number);
  ChangeResult& result = session.results[word.number % kKeptResults];
  if (word.number != 0 && word.number <= session.last) {
    if (result.number != word.number) {
      throw Error("change {} was answered long ago; the newest is {}", word.number, session.last);
    }
    if (result.verdict == Verdict::kGuarded) throw GuardChanged("its guard was another one before");
    if (result.verdict != Verdict::kDone) throw Error("the box refused this change before");
    return {.region = word.region, .version = result.version, .value = result.value};
  }
  if (word.number != session.last + 1) {
    throw Error("change {} follows change {}; a client counts by one", word.number, session.last);
  }
  try {
    const RegionRecord& region = Known(word.region);
    const bool counts = word.kind == WordKind::kFetchAdd || word.kind == WordKind::kCompareSwap;
    const RegionType type = counts                               ? RegionType::kI64
                            : word.kind == WordKind::kAccumulate ? RegionType::kF32
                                                                 : word.type;
    CheckPlace(NameOf(region), region.type, region.length, type, word.offset,
               counts ? 1 : word.length);
    CheckNote(word.note_bytes);
    if (BringsValues(word.kind) && word.length * ValueBytes(region.type) > session.slot_bytes) {
      throw Error("{} values for region '{}' do not fit into the client's slot", word.length,
                  NameOf(region));
    }
    CheckGuard(word);
    const ChangeResult made = changes_.Make(number, word);
    return {.region = word.region, .version = made.version, .value = made.value};
  } catch (const GuardChanged&) {
    result = {word.number, 0, 0, Verdict::kGuarded, 0};
    session.last = word.number;
    throw;
  } catch (const std::exception&) {
    result = {word.number, 0, 0, Verdict::kRefused, 0};
    session.last = word.number;
    throw;
  }
}

// Changes are made one at a time, so the number is what it is until this one is made.
void MemoryStore::CheckGuard(const Word& word) const {
  if (word.kind != WordKind::kAccumulate || word.guard == kNoRegion) return;
  const RegionRecord& region = Known(word.guard);
  CheckPlace(NameOf(region), region.type, region.length, RegionType::kI64, uint64_t(word.b), 1);
  const int64_t is = reinterpret_cast<const int64_t*>(image_->at(region.data))[word.b];
  if (is == word.a) return;
  throw GuardChanged("number {} of region '{}' is {}, not {}", word.b, NameOf(region), is, word.a);
}

Reply MemoryStore::Create(const Word& word) {
  const std::string_view name = NameIn(word);
  CheckName(name);
  if (word.type != RegionType::kF32 && word.type != RegionType::kI64) {
    throw Error("region '{}' cannot have values of type {}", name, uint32_t(word.type));
  }
  if (const auto found = Find(name)) {
    const RegionRecord& region = image_->region(*found);
    if (region.type != word.type || region.length != word.length) {
      throw Error("region '{}' has {} {} values, not {} {}", name, region.length,
                  NameOf(region.type), word.length, NameOf(word.type));
    }
    return About(*found, region);
  }
  uint32_t number = 0;
  while (number < kMostRegions && image_->region(number).used.load()) ++number;
  if (number == kMostRegions) throw Error("the memory box has {} regions already", kMostRegions);
  if (word.length == 0) throw Error("region '{}' must have at least 1 value", name);
  const uint64_t size = ValueBytes(word.type);
  if (word.length > image_->bytes() / size) {
    throw Error("the memory box has no room for region '{}' of {} {} values (--size)", name,
                word.length, NameOf(word.type));
  }
  const uint64_t capacity = RoundUpToPage(word.length * size);
  const auto [data, ring] = extents_.TakeTwo(capacity, kKeptNotes * sizeof(RingEntry));
  RegionRecord& region = image_->region(number);
  region.type = word.type;
  std::memcpy(region.name, word.name, sizeof(region.name));
  region.length = word.length;
  region.capacity = capacity;
  region.data = data;
  region.ring = ring;
  region.version.store(0);
  region.lock_owner.store(0);
  region.writing.store(0);
  region.used.store(1, std::memory_order_release);
  return About(number, region);
}

Reply MemoryStore::LockWord(uint32_t session, const Word& word) {
  RegionRecord& region = Known(word.region);
  const uint64_t client = image_->session(session).client.load();
  const uint64_t owner = region.lock_owner.load();
  Reply answer = About(word.region, region);
  if (word.kind == WordKind::kLock) {
    if (owner == 0) region.lock_owner.store(client);
    answer.value = owner == 0 || owner == client;  // the word may have been said before
    return answer;
  }
  if (owner != 0 && owner != client) {
    throw Error("another client has the lock of region '{}'", NameOf(region));
  }
  region.lock_owner.store(0);
  region.changed.Notify();
  return answer;
}

RegionRecord& MemoryStore::Known(uint32_t number) const {
  if (number >= kMostRegions || image_->region(number).used.load() == 0) {
    throw Error("the memory box has no region number {}", number);
  }
  return image_->region(number);
}

std::optional<uint32_t> MemoryStore::Find(std::string_view name) const {
  for (uint32_t r = 0; r < kMostRegions; ++r) {
    const RegionRecord& region = image_->region(r);
    if (region.used.load(std::memory_order_acquire) && NameOf(region) == name) return r;
  }
  return {};
}

uint32_t MemoryStore::BeginSession(uint64_t client) {
  std::lock_guard lock(mutex_);
  const uint32_t session = ClaimSession(image_->header(), client);
  if (session < kMostSessions) return session;
  throw Error("the memory box has {} clients already", kMostSessions);
}

std::optional<uint32_t> MemoryStore::FindSession(uint64_t client) const {
  for (uint32_t s = 0; s < kMostSessions; ++s) {
    if (image_->session(s).client.load() == client) return s;
  }
  return {};
}

void MemoryStore::EndSession(uint32_t session) {
  std::lock_guard lock(mutex_);
  trireme::EndSession(*image_, session);
}

void MemoryStore::EndDead() {
  for (uint32_t s = 0; s < kMostSessions; ++s) {
    const SessionRecord& session = image_->session(s);
    const ProcessId process{session.pid.load(), session.born.load()};
    if (session.client.load() != 0 && process.pid != 0 && !IsAlive(process)) EndSession(s);
  }
}

std::span<std::byte> MemoryStore::Slot(uint32_t session, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  return SlotOf(session, bytes);
}

std::span<std::byte> MemoryStore::SlotFor(uint32_t session, const Word& word, uint64_t bytes) {
  const bool known = word.region < kMostRegions && image_->region(word.region).used.load();
  const uint64_t room = known ? std::max(bytes, image_->region(word.region).capacity) : bytes;
  return Slot(session, room).first(bytes);
}

std::span<std::byte> MemoryStore::SlotOf(uint32_t number, uint64_t bytes) {
  SessionRecord& session = image_->session(number);
  if (session.slot_bytes < bytes) {
    if (bytes > image_->bytes()) {
      throw Error("the memory box has no room for a slot of {} (--size)",
                  FormatBytes(double(bytes)));
    }
    session.slot_bytes = 0;  // the old one makes room
    const uint64_t taken = extents_.Take(bytes, false);
    session.slot = taken;
    std::atomic_signal_fence(std::memory_order_release);
    session.slot_bytes = RoundUpToPage(bytes);
  }
  return {image_->at(session.slot), session.slot_bytes};
}

MemoryStore::Facts MemoryStore::Look() const {
  std::lock_guard lock(mutex_);
  const BoxHeader& head = image_->header();
  Facts facts{.used = extents_.used(),
              .size = image_->bytes() - head.arena,
              .changes = head.changes.load(),
              .refused = head.refused.load(),
              .incarnation = head.incarnation};
  for (const RegionRecord& region : head.regions) {
    if (region.used.load(std::memory_order_acquire) == 0) continue;
    facts.regions.push_back({std::string(NameOf(region)), region.type, region.length,
                             region.version.load(), region.lock_owner.load() != 0});
  }
  for (const SessionRecord& session : head.sessions) facts.clients += session.client.load() != 0;
  return facts;
}

uint32_t MemoryStore::CountRegions() const {
  std::lock_guard lock(mutex_);
  uint32_t count = 0;
  while (count < kMostRegions && image_->region(count).used.load()) ++count;
  return count;
}

void MemoryStore::CopyRegion(uint32_t number, RegionCopy& copy) const {
  std::lock_guard lock(mutex_);
  const RegionRecord& region = Known(number);
  const uint64_t version = region.version.load();
  std::memcpy(copy.head.name, region.name, sizeof(region.name));
  copy.head.type = region.type;
  copy.head.length = region.length;
  copy.head.version = version;
  copy.head.notes = uint32_t(std::min(version, kKeptNotes));
  const std::byte* const data = image_->at(region.data);
  copy.values.assign(data, data + region.length * ValueBytes(region.type));
  copy.notes.clear();
  for (uint64_t v = version - copy.head.notes + 1; v <= version; ++v) {
    copy.notes.push_back(image_->ring(region, v));
  }
}

void MemoryStore::RestoreRegion(const RegionCopy& copy) {
  std::lock_guard lock(mutex_);
  Word word{.kind = WordKind::kCreate, .type = copy.head.type, .length = copy.head.length};
  std::memcpy(word.name, copy.head.name, sizeof(word.name));
  word.name[kMostRegionName] = '\0';
  RegionRecord& region = image_->region(Create(word).region);
  std::copy_n(copy.values.data(), copy.values.size(), image_->at(region.data));
  for (uint64_t i = 0; i < copy.notes.size(); ++i) {
    image_->ring(region, copy.head.version - copy.notes.size() + 1 + i) = copy.notes[i];
  }
  region.version.store(copy.head.version);
}

ReadLock::ReadLock(MemoryImage& image, uint32_t session, uint64_t client, uint32_t region,
                   Deadline deadline)
    : image_(image),
      session_(image.session(session)),
      region_(image.region(region)),
      mark_(ReadingMark(client, region)) {
  for (;;) {
    const uint32_t count = region_.changed.Count();
    if (session_.client.load() != client) {
      throw PeerLost("the memory box has ended this client's session");
    }
    session_.reading.store(mark_);
    held_ = true;
    if (region_.writing.load() == 0) return;
    Release();
    if (After(0) >= deadline)
      throw PeerLost("region '{}' has been changing for too long", NameOf(region_));
    region_.changed.Wait(count, std::min(deadline, After(0.1)), 0);
  }
}

bool ReadLock::Wanted() const { return region_.writing.load() != 0; }

bool ReadLock::Release() {
  if (!std::exchange(held_, false)) return true;
  uint64_t mark = mark_;
  const bool kept = session_.reading.compare_exchange_strong(mark, 0);
  if (region_.writing.load() != 0) image_.header().readers.Notify();
  return kept;
}

}  // namespace trireme
