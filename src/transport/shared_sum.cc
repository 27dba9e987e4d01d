#include "transport/shared_sum.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "base/assert.h"
#include "base/error.h"
#include "flat/cpu/loops.h"

namespace trireme {
namespace {

constexpr size_t kBlock = 2048;    // floats: stays in the first cache
constexpr size_t kCacheLine = 16;  // floats of a cache line: no two ranks write the same

// How often a sleeper looks whether the group still lives.
constexpr double kLook_s = 0.05;

bool Reached(uint32_t value, uint32_t round) { return int32_t(value - round) >= 0; }

}  // namespace

size_t SumPlace::Bytes(int ranks) { return sizeof(SumPlace) + size_t(ranks) * sizeof(Seat); }

SharedSum::SharedSum(SumPlace& place, Member member)
    : place_(place), member_(std::move(member)), spins_(SpinsFor(member_.size)) {}

bool SharedSum::SumInOrder(std::span<const std::span<float>> parts, std::span<float> into) {
  Announce(parts, into);
  AwaitAll(&SumPlace::Seat::arrived);
  SumPlace::Seat& own = place_.seat(member_.rank);
  own.finite = SumStretch();
  own.done.store(round_, std::memory_order_release);
  place_.event().Notify();
  AwaitAll(&SumPlace::Seat::done);
  // Nobody writes it again before this member has arrived at the next meeting.
  bool finite = true;
  for (int r = 0; r < member_.size; ++r) finite = finite && place_.seat(r).finite;
  return finite;
}

void SharedSum::Announce(std::span<const std::span<float>> parts, std::span<float> into) {
  TRIREME_ASSERT(parts.size() <= SharedMemory::kMostParts);
  const auto offset = [&](std::span<float> values) {
    TRIREME_ASSERT(values.size() == into.size());
    return uint64_t(reinterpret_cast<std::byte*>(values.data()) - member_.base);
  };
  ++round_;
  SumPlace::Seat& seat = place_.seat(member_.rank);
  seat.parts = uint32_t(parts.size());
  seat.length = into.size();
  seat.into = offset(into);
  for (size_t i = 0; i < parts.size(); ++i) seat.at[i] = offset(parts[i]);
  seat.arrived.store(round_, std::memory_order_release);
  place_.event().Notify();
}

void SharedSum::AwaitAll(std::atomic<uint32_t> SumPlace::Seat::*what) {
  const Deadline deadline = After(member_.timeout_s);
  for (int r = 0; r < member_.size; ++r) {
    for (;;) {
      const uint32_t count = place_.event().Count();
      if (Reached((place_.seat(r).*what).load(std::memory_order_acquire), round_)) break;
      member_.check(kNobody);
      if (std::chrono::steady_clock::now() >= deadline) member_.check(r);
      place_.event().Wait(count, std::min(deadline, After(kLook_s)), spins_);
    }
  }
}

void SharedSum::Await(int whom, FunctionRef<bool()> done) const {
  constexpr int kLooks = 100;  // before it lets others run, and then before it sleeps
  const Deadline deadline = After(member_.timeout_s);
  for (int look = 0; !done(); ++look) {
    if (look < kLooks) continue;
    member_.check(kNobody);
    if (std::chrono::steady_clock::now() >= deadline) member_.check(whom);
    if (look < 2 * kLooks) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

float* SharedSum::At(const SumPlace::Seat& seat, uint64_t place) const {
  const uint64_t bytes = seat.length * sizeof(float);
  if (member_.bytes && (place > member_.bytes || bytes > member_.bytes - place)) {
    throw Error("rank {}: a rank's entry in the shared memory is damaged", member_.rank);
  }
  return reinterpret_cast<float*>(reinterpret_cast<uintptr_t>(member_.base) + place);
}

// Own stretch of the values, block by block: the sum of all parts, copied to every member.
bool SharedSum::SumStretch() {
  const size_t length = place_.seat(member_.rank).length;
  const size_t lines = (length + kCacheLine - 1) / kCacheLine;
  const size_t begin = lines * size_t(member_.rank) / size_t(member_.size) * kCacheLine;
  const size_t end =
      std::min(length, lines * size_t(member_.rank + 1) / size_t(member_.size) * kCacheLine);
  const uint64_t bytes = (end - std::min(begin, end)) * sizeof(float);
  for (int r = 0; r < member_.size; ++r) {
    const SumPlace::Seat& seat = place_.seat(r);
    if (r != member_.rank) {
      volume_.received += seat.parts * bytes;
      volume_.sent += bytes;
    }
    if (seat.length != length || seat.parts > SharedMemory::kMostParts) {
      throw Error("rank {} sums {} values, but rank {} sums {}", member_.rank, length, r,
                  seat.length);
    }
  }
  bool finite = true;
  alignas(64) float sum[kBlock];
  for (size_t at = begin; at < end; at += kBlock) {
    const size_t size = std::min(kBlock, end - at);
    SliceList list;
    bool begun = false;
    const auto add = [&] {
      loops::SumInOrder(sum, list, 0, sum, size);
      list.size = 0;
    };
    for (int r = 0; r < member_.size; ++r) {
      const SumPlace::Seat& seat = place_.seat(r);
      for (uint32_t i = 0; i < seat.parts; ++i) {
        float* part = At(seat, seat.at[i]) + at;
        if (!begun) {
          std::memcpy(sum, part, size * sizeof(float));
          begun = true;
          continue;
        }
        list.items[list.size++] = {part, size, nullptr};
        if (list.size == SliceList::kMost) add();
      }
    }
    if (!begun) std::memset(sum, 0, size * sizeof(float));
    if (list.size) add();
    finite = finite && std::isfinite(loops::Largest(sum, size));
    for (int r = 0; r < member_.size; ++r) {
      const SumPlace::Seat& seat = place_.seat(r);
      std::memcpy(At(seat, seat.into) + at, sum, size * sizeof(float));
    }
  }
  return finite;
}

}  // namespace trireme
