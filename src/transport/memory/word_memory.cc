#include "transport/memory/word_memory.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace trireme {
namespace {

constexpr double kOpenPause_s = 0.01;  // between looks for a region that nobody has made yet

Word WordFor(WordKind kind, std::string_view name) {
  CheckName(name);
  Word word{.kind = kind};
  std::memcpy(word.name, name.data(), name.size());
  return word;
}

}  // namespace

Region WordMemory::Create(std::string_view name, RegionType type, uint64_t length) {
  Word word = WordFor(WordKind::kCreate, name);
  word.type = type;
  word.length = length;
  return Reach(name, word);
}

Region WordMemory::Open(std::string_view name, Deadline deadline) {
  const Word word = WordFor(WordKind::kOpen, name);
  for (;;) {
    const Region region = Reach(name, word);
    if (region.number >= 0) return region;
    if (After(0) >= deadline) throw Error("the memory box has no region '{}'", name);
    std::this_thread::sleep_until(std::min(deadline, After(kOpenPause_s)));
  }
}

Ticket WordMemory::Accumulate(const Region& region, uint64_t offset, std::span<const float> values,
                              std::span<const std::byte> note, uint64_t* version,
                              const MemoryGuard* guard) {
  return ChangeValues(WordKind::kAccumulate, region, RegionType::kF32, offset,
                      std::as_bytes(values), note, version, guard);
}

Ticket WordMemory::PutBytes(const Region& region, RegionType type, uint64_t offset,
                            std::span<const std::byte> values, std::span<const std::byte> note,
                            uint64_t* version) {
  return ChangeValues(WordKind::kPut, region, type, offset, values, note, version, nullptr);
}

Ticket WordMemory::ChangeValues(WordKind kind, const Region& region, RegionType type,
                                uint64_t offset, std::span<const std::byte> values,
                                std::span<const std::byte> note, uint64_t* version,
                                const MemoryGuard* guard) {
  CheckNote(note.size());
  Word word{.kind = kind,
            .type = type,
            .region = uint32_t(region.number),
            .note_bytes = uint32_t(note.size()),
            .offset = offset,
            .length = values.size() / ValueBytes(type)};
  std::copy(note.begin(), note.end(), word.note);
  SetGuard(word, guard);
  return Change(region, word, values, version, guard);
}

int64_t WordMemory::FetchAdd(const Region& region, uint64_t index, int64_t amount) {
  return Count(region, {.kind = WordKind::kFetchAdd,
                        .type = RegionType::kI64,
                        .region = uint32_t(region.number),
                        .offset = index,
                        .length = 1,
                        .a = amount});
}

int64_t WordMemory::CompareSwap(const Region& region, uint64_t index, int64_t expected,
                                int64_t wanted) {
  return Count(region, {.kind = WordKind::kCompareSwap,
                        .type = RegionType::kI64,
                        .region = uint32_t(region.number),
                        .offset = index,
                        .length = 1,
                        .a = expected,
                        .b = wanted});
}

RegionNote NoteOf(const RingEntry& entry) {
  const size_t bytes = std::min<size_t>(entry.note_bytes, kMostNote);
  return {entry.version, entry.client, entry.number, {entry.note, entry.note + bytes}};
}

}  // namespace trireme
