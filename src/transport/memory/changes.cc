#include "transport/memory/changes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "flat/cpu/loops.h"

namespace trireme {
namespace {

constexpr double kReaderLook_s = 0.1;  // between looks at whether a reader lives
// A second, and what copying takes on a slow machine. Who stands still (a stopped process) reads
// again when it goes on.
constexpr double kReaderPatience_s = 1, kReaderRate = 256e6;  // bytes per second

int64_t& WordAt(MemoryImage& image, const RegionRecord& region, uint64_t index) {
  return reinterpret_cast<int64_t*>(image.at(region.data))[index];
}

}  // namespace

Changes::Changes(MemoryImage& image, Team& team, double timeout_s)
    : image_(image), team_(team), timeout_s_(timeout_s) {
  if (image_.header().journal.running.load(std::memory_order_acquire)) {
    image_.region(image_.header().journal.word.region).writing.store(1);
    AwaitReaders(image_.header().journal.word.region);
    if (image_.header().journal.word.kind == WordKind::kAccumulate) PutBack();
    Apply();
    Commit();
  }
  for (uint32_t r = 0; r < kMostRegions; ++r) {
    if (image_.region(r).writing.exchange(0)) image_.region(r).changed.Notify();
  }
}

ChangeResult Changes::Make(uint32_t session, const Word& word) {
  RegionRecord& region = image_.region(word.region);
  if (word.kind == WordKind::kAccumulate) {
    CheckFinite(image_.session(session), word, NameOf(region));
  }
  region.writing.store(1);
  AwaitReaders(word.region);
  Begin(session, word);
  Apply();
  Commit();
  region.writing.store(0, std::memory_order_release);
  region.changed.Notify();
  return image_.session(session).results[word.number % kKeptResults];
}

void Changes::CheckFinite(const SessionRecord& session, const Word& word, std::string_view name) {
  const auto* const values = reinterpret_cast<const float*>(image_.at(session.slot));
  std::atomic<bool> finite = true;
  constexpr size_t kGrain = kPiece / sizeof(float);
  ParallelFor(team_, word.length, kGrain, [&](size_t begin, size_t end) {
    if (!std::isfinite(loops::Largest(values + begin, end - begin))) finite = false;
  });
  if (!finite) throw Error("an add to region '{}' has values that are not finite", name);
}

void Changes::Begin(uint32_t number, const Word& word) {
  const RegionRecord& region = image_.region(word.region);
  const SessionRecord& session = image_.session(number);
  Journal& journal = image_.header().journal;
  journal.session = number;
  journal.client = session.client.load();
  journal.version = region.version.load() + 1;
  journal.new_data = region.data;
  journal.new_slot = session.slot;
  journal.before = journal.after = 0;
  CopyWord(word, journal.word);
  journal.swaps = word.kind == WordKind::kPut && word.length == region.length &&
                  session.slot_bytes == region.capacity;
  if (journal.swaps) std::swap(journal.new_data, journal.new_slot);
  if (word.kind == WordKind::kFetchAdd || word.kind == WordKind::kCompareSwap) {
    journal.before = journal.after = WordAt(image_, region, word.offset);
    if (word.kind == WordKind::kFetchAdd) {  // wraps around, as processors do
      journal.after = int64_t(uint64_t(journal.before) + uint64_t(word.a));
    } else if (journal.before == word.a) {
      journal.after = word.b;
    }
  }
  if (word.kind == WordKind::kAccumulate) {
    const uint64_t pieces = (word.length * sizeof(float) + kPiece - 1) / kPiece;
    for (uint64_t p = 0; p < pieces; ++p) image_.added()[p].store(0, std::memory_order_relaxed);
  }
  journal.running.store(1, std::memory_order_release);
}

// From wherever it stands: whatever was done may be done again.
void Changes::Apply() {
  const Journal& journal = image_.header().journal;
  const Word& word = journal.word;
  RegionRecord& region = image_.region(word.region);
  SessionRecord& session = image_.session(journal.session);
  switch (word.kind) {
    case WordKind::kAccumulate:
      return Add(region, session, word);
    case WordKind::kPut: {
      if (journal.swaps) {
        region.data = journal.new_data;
        std::atomic_signal_fence(std::memory_order_release);
        session.slot = journal.new_slot;
        return;
      }
      const size_t size = ValueBytes(region.type);
      std::byte* const to = image_.at(region.data) + word.offset * size;
      const std::byte* const from = image_.at(session.slot);
      ParallelFor(team_, word.length * size, kPiece, [&](size_t begin, size_t end) {
        std::memcpy(to + begin, from + begin, end - begin);
      });
      return;
    }
    default:
      WordAt(image_, region, word.offset) = journal.after;
  }
}

void Changes::Add(const RegionRecord& region, const SessionRecord& session, const Word& word) {
  BoxHeader& head = image_.header();
  auto* const to = reinterpret_cast<float*>(image_.at(region.data)) + word.offset;
  const auto* const from = reinterpret_cast<const float*>(image_.at(session.slot));
  constexpr uint64_t kValues = kPiece / sizeof(float);
  const auto length = [&](uint64_t piece) {
    return size_t(std::min(kValues, word.length - piece * kValues));
  };
  const uint64_t pieces = (word.length + kValues - 1) / kValues;
  ParallelFor(team_, pieces, 1, [&](size_t begin, size_t end, size_t thread) {
    Aside& aside = head.aside[thread];
    for (size_t p = begin; p < end; ++p) {
      if (image_.added()[p].load(std::memory_order_acquire)) continue;
      float* const values = to + p * kValues;
      std::memcpy(aside.values, values, length(p) * sizeof(float));
      aside.piece.store(p + 1, std::memory_order_release);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      loops::Add(from + p * kValues, values, length(p));
      image_.added()[p].store(1, std::memory_order_release);
      aside.piece.store(0, std::memory_order_release);
    }
  });
}

// Of an add that a killed process was making: the pieces that it had begun are as they were. At
// the end of an add nothing is aside.
void Changes::PutBack() {
  const Word& word = image_.header().journal.word;
  constexpr uint64_t kValues = kPiece / sizeof(float);
  auto* const to =
      reinterpret_cast<float*>(image_.at(image_.region(word.region).data)) + word.offset;
  for (Aside& aside : image_.header().aside) {
    const uint64_t piece = aside.piece.load(std::memory_order_acquire);
    const bool within = piece != 0 && (piece - 1) * kValues < word.length;
    if (within && !image_.added()[piece - 1].load(std::memory_order_acquire)) {
      const uint64_t length = std::min(kValues, word.length - (piece - 1) * kValues);
      std::memcpy(to + (piece - 1) * kValues, aside.values, length * sizeof(float));
    }
    aside.piece.store(0, std::memory_order_release);  // this one may be killed, too
  }
}

void Changes::Commit() {
  BoxHeader& head = image_.header();
  Journal& journal = head.journal;
  RegionRecord& region = image_.region(journal.word.region);
  SessionRecord& session = image_.session(journal.session);
  RingEntry& entry = image_.ring(region, journal.version);
  entry.version = journal.version;
  entry.client = journal.client;
  entry.number = journal.word.number;
  entry.note_bytes = journal.word.note_bytes;
  std::memcpy(entry.note, journal.word.note, journal.word.note_bytes);
  region.version.store(journal.version, std::memory_order_release);
  session.results[journal.word.number % kKeptResults] = {journal.word.number, journal.version,
                                                         journal.before, Verdict::kDone, 0};
  std::atomic_signal_fence(std::memory_order_release);
  session.last = journal.word.number;
  journal.running.store(0, std::memory_order_release);
  head.changes.fetch_add(1, std::memory_order_relaxed);
}

void Changes::AwaitReaders(uint32_t region) {
  BoxHeader& head = image_.header();
  std::optional<Deadline> patience, reads_again;  // since somebody read
  for (uint32_t s = 0; s < head.session_top.load(); ++s) {
    SessionRecord& session = image_.session(s);
    for (;;) {
      const uint32_t count = head.readers.Count();
      const uint64_t client = session.client.load();
      uint64_t mark = session.reading.load();
      if (client == 0 || mark == 0 || mark != ReadingMark(client, region)) break;
      if (!patience) {
        patience = After(timeout_s_);
        reads_again = After(std::min(timeout_s_, ReaderPatience(image_.region(region).capacity)));
      }
      const ProcessId process{session.pid.load(), session.born.load()};
      const bool gone = process.pid != 0 && !IsAlive(process);
      if (gone || After(0) >= *patience) {
        EndSession(image_, s);
        break;
      }
      if (process.pid != 0 && After(0) >= *reads_again) {
        session.reading.compare_exchange_strong(mark, 0);
        break;
      }
      head.readers.Wait(count, After(kReaderLook_s), 0);
    }
  }
}

double ReaderPatience(uint64_t bytes) { return kReaderPatience_s + double(bytes) / kReaderRate; }

void EndSession(MemoryImage& image, uint32_t number) {
  SessionRecord& session = image.session(number);
  const uint64_t client = session.client.load();
  if (client == 0) return;
  for (uint32_t r = 0; r < kMostRegions; ++r) {
    RegionRecord& region = image.region(r);
    uint64_t owner = client;
    if (region.used.load() && region.lock_owner.compare_exchange_strong(owner, 0)) {
      region.changed.Notify();
    }
  }
  session.slot_bytes = 0;
  session.last = 0;
  for (ChangeResult& result : session.results) result = {};
  session.pid.store(0);
  session.born.store(0);
  session.reading.store(0);
  session.posted.store(0);
  session.client.store(0);  // last: from here on it is anybody's
  session.answered.Notify();
}

}  // namespace trireme
