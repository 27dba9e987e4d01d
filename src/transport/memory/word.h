#pragma once
#include <cstdint>
#include <string_view>

#include "transport/memory.h"

namespace trireme {

// What a client says to a box, in memory that both map or on a wire: numbers as they lie in memory.
enum class WordKind : uint32_t {
  kCreate = 1,  // name, type, length
  kOpen,        // name; the answer's region is kNoRegion where there is none
  kLock,        // the answer's value: 1, or 0 where another client has it
  kUnlock,
  kLeave,  // the session ends
  // Changes: numbered. Values of kPut and kAccumulate are in the client's slot.
  kPut,
  kAccumulate,
  kFetchAdd,
  kCompareSwap,
  kSlot,  // room for `length` bytes; on a wire: where to write so many values of a region
  // Of the way `tcp`: a mapped client looks for itself.
  kGet,
  kWait,   // for version `number`, or `a` milliseconds
  kNotes,  // after version `number`, at most `length`
  kStatus,
  // Of long values that go beside the connection (transport/memory/bulk.h).
  kWays,     // the answer is the provider that the box offers, or empty
  kBulk,     // the address of the client's end follows, `length` bytes; none: no more of it
  kRelease,  // the region that kGet has held; the answer's value: 1, or 0 where it has changed
  kProbe,    // `length` bytes, to see how fast they come
};

constexpr bool IsChange(WordKind kind) {
  return kind >= WordKind::kPut && kind <= WordKind::kCompareSwap;
}
constexpr bool BringsValues(WordKind kind) {
  return kind == WordKind::kPut || kind == WordKind::kAccumulate;
}

constexpr uint32_t kNoRegion = ~uint32_t{0};
constexpr uint32_t kByBulk = ~uint32_t{0};  // `runs` of kPut, kAccumulate, kGet: beside the wire

struct Word {
  WordKind kind = WordKind::kOpen;
  RegionType type = RegionType::kF32;
  uint32_t region = kNoRegion;
  uint32_t note_bytes = 0;
  uint64_t number = 0;              // of a change: counts those of the client from 1 up
  uint64_t offset = 0, length = 0;  // values
  int64_t a = 0, b = 0;             // FetchAdd: the amount; CompareSwap: expected, wanted;
                                    // with a guard: the expected number, its index
  uint32_t guard = kNoRegion;       // of kAccumulate, if it depends on a number: the i64 region
  uint32_t runs = 0;  // of kAccumulate on a wire: of zeros and values (ZeroRun); 0: all values
  char name[kMostRegionName + 1] = {};
  std::byte note[kMostNote] = {};
};
static_assert(sizeof(Word) == 64 + 64 + 256);

enum class Verdict : uint32_t {
  kDone = 1,
  kRefused,  // `text` says why; nothing has changed
  kEnded,    // the box knows no such session
  kGuarded,  // likewise refused: the number that the change depends on is another one
  kNoBulk,   // this connection has no end for long values: it is a new one
};

struct Reply {
  Verdict verdict = Verdict::kDone;
  RegionType type = RegionType::kF32;
  uint32_t region = kNoRegion;
  uint32_t zero = 0;
  uint64_t length = 0;   // of the region; of what follows on a wire: values, notes, bytes
  uint64_t version = 0;  // of the region; of a change: that it made
  int64_t value = 0;
  char text[320] = {};
};
static_assert(sizeof(Reply) == 40 + 320);

// What is said, without the room behind it: the rest of `to` stays as it was. Of a reply, the text
// of a refusal.
void CopyWord(const Word& from, Word& to);
void CopyReply(const Reply& from, Reply& to);

void SetText(Reply& answer, std::string_view text);  // cut where it is too long
std::string_view TextOf(const Reply& answer);

// Throws the Error that a refusal is.
void CheckReply(const Reply& answer);
// Throws where [offset, offset + length) is not of the region, or the type is another.
void CheckPlace(std::string_view name, RegionType is, uint64_t has, RegionType type,
                uint64_t offset, uint64_t length);
// Throws where the ring that ends with `newest` no longer has all that came after `version`.
void CheckKept(std::string_view name, uint64_t version, uint64_t newest);
void CheckNote(size_t bytes);
void SetGuard(Word& word, const MemoryGuard* guard);  // null: it depends on nothing
void CheckName(std::string_view name);

}  // namespace trireme
