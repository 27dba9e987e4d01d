#include "strategy/server/centre_note.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "transport/memory.h"

namespace trireme {
namespace {

constexpr size_t kFirst = 1 + PushHead::kInts;  // numbers before the runs: first id, count
constexpr size_t kMostNumbers = kMostNote / sizeof(int64_t);
constexpr size_t kMostRuns = (kMostNumbers - kFirst) / 2;
constexpr int64_t kMostInRun = 1 << 20;  // of a run; nobody computes more before a meeting
constexpr int64_t kMostId = std::numeric_limits<int64_t>::max() - kMostInRun;

std::vector<int64_t> RunsOf(std::span<const int64_t> leases) {
  std::vector<int64_t> runs;
  for (const int64_t id : leases) {
    if (!runs.empty() && runs[runs.size() - 2] + runs.back() == id && runs.back() < kMostInRun) {
      ++runs.back();
    } else {
      runs.insert(runs.end(), {id, 1});
    }
  }
  return runs;
}

}  // namespace

bool HasRoomInNote(std::span<const int64_t> leases) {
  return RunsOf(leases).size() / 2 < kMostRuns;
}

std::vector<std::byte> PackNote(const CentreNote& note) {
  const auto head = note.head.ints();
  const std::vector<int64_t> runs = RunsOf(note.leases);
  std::vector<int64_t> numbers{note.client};
  numbers.insert(numbers.end(), head.begin(), head.end());
  numbers.insert(numbers.end(), runs.begin(), runs.end());
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

std::optional<CentreNote> UnpackNote(std::span<const std::byte> bytes) {
  const size_t count = bytes.size() / sizeof(int64_t);
  if (bytes.size() % sizeof(int64_t) || count > kMostNumbers) return {};
  if (count < kFirst + 2 || (count - kFirst) % 2) return {};
  std::vector<int64_t> numbers(count);
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  CentreNote note{.client = numbers[0], .head = PushHead::Of(std::span(numbers).subspan(1))};
  for (size_t i = kFirst; i < count; i += 2) {
    const int64_t first = numbers[i], ids = numbers[i + 1];
    if (first < 0 || first > kMostId || ids < 1 || ids > kMostInRun) return {};
    for (int64_t id = 0; id < ids; ++id) note.leases.push_back(first + id);
  }
  return note;
}

}  // namespace trireme
