#include "transport/memory/word.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace trireme {

// Whoever says more notes than there is room for is refused by the number.
void CopyWord(const Word& from, Word& to) {
  std::memcpy(static_cast<void*>(&to), &from, offsetof(Word, name));
  if (to.kind == WordKind::kCreate || to.kind == WordKind::kOpen) {
    std::memcpy(to.name, from.name, sizeof(to.name));
  }
  std::memcpy(to.note, from.note, std::min<size_t>(to.note_bytes, kMostNote));
}

void CopyReply(const Reply& from, Reply& to) {
  std::memcpy(static_cast<void*>(&to), &from, offsetof(Reply, text));
  if (to.verdict == Verdict::kDone) return;
  const std::string_view text = TextOf(from);
  std::memcpy(to.text, text.data(), text.size());
  if (text.size() < sizeof(to.text)) to.text[text.size()] = '\0';
}

void SetText(Reply& answer, std::string_view text) {
  const size_t length = std::min(text.size(), sizeof(answer.text) - 1);
  std::memcpy(answer.text, text.data(), length);
  answer.text[length] = '\0';
}

std::string_view TextOf(const Reply& answer) {
  return {answer.text, strnlen(answer.text, sizeof(answer.text))};
}

void CheckReply(const Reply& answer) {
  if (answer.verdict == Verdict::kDone) return;
  if (answer.verdict == Verdict::kEnded) {
    throw PeerLost("the memory box has ended this client's session: {}", TextOf(answer));
  }
  if (answer.verdict == Verdict::kGuarded) throw GuardChanged("{}", TextOf(answer));
  throw Error("{}", TextOf(answer));
}

void CheckPlace(std::string_view name, RegionType is, uint64_t has, RegionType type,
                uint64_t offset, uint64_t length) {
  if (is != type) {
    throw Error("region '{}' holds {} values, not {}", name, NameOf(is), NameOf(type));
  }
  if (offset > has || length > has - offset) {
    throw Error("values {} to {} are beyond the end of region '{}', which has {}", offset,
                length > ~offset ? ~uint64_t{0} : offset + length, name, has);
  }
}

void CheckKept(std::string_view name, uint64_t version, uint64_t newest) {
  if (newest > version && newest - version > kKeptNotes) {
    throw Error("region '{}' keeps the notes of its newest {} versions; those after {} are gone",
                name, kKeptNotes, version);
  }
}

void CheckNote(size_t bytes) {
  if (bytes > kMostNote) {
    throw Error("a note of {} bytes is too long; at most {} are allowed", bytes, kMostNote);
  }
}

void SetGuard(Word& word, const MemoryGuard* guard) {
  if (!guard) return;
  word.guard = uint32_t(guard->region.number);
  word.a = guard->expected;
  word.b = int64_t(guard->index);
}

void CheckName(std::string_view name) {
  if (name.empty() || name.size() > kMostRegionName) {
    throw Error("a region's name must have 1 to {} bytes, got {}", kMostRegionName, name.size());
  }
  for (const char c : name) {
    if (c < ' ' || c > '~') throw Error("a region's name must be printable ASCII without newlines");
  }
}

}  // namespace trireme
