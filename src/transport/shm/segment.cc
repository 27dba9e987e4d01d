#include "transport/shm/segment.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace trireme {
namespace {

constexpr size_t kPage = 4096;
size_t RoundUp(size_t n, size_t to) { return (n + to - 1) / to * to; }

struct alignas(64) PaddedEvent {
  FutexEvent event;
};
struct alignas(64) PaddedSlot {
  ShmSlot slot;
};

}  // namespace

ShmSegment::ShmSegment(int ranks, size_t bytes) : ranks_(ranks) {
  const size_t pairs = size_t(ranks) * size_t(ranks);
  const auto append = [&](size_t part) {
    const size_t at = size_;
    size_ = RoundUp(size_ + part, kPage);
    return at;
  };
  append(sizeof(Header));
  events_ = append(size_t(ranks) * sizeof(PaddedEvent));
  slots_ = append(pairs * kSlots * sizeof(PaddedSlot));
  meeting_ = append(SumPlace::Bytes(ranks));
  staging_ = append(pairs * kSlots * ShmSlot::kStaging);
  arena_size_ = RoundUp(bytes, kPage);
  arenas_ = append(size_t(ranks) * arena_size_);
  // Only what is touched takes memory.
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error("cannot map {} MB of shared memory for {} ranks: {}", size_ >> 20, ranks,
                std::strerror(errno));
  }
  base_ = static_cast<std::byte*>(memory);
}

ShmSegment::~ShmSegment() { munmap(base_, size_); }

bool ShmSegment::Holds(const void* data, size_t bytes) const {
  const auto* at = static_cast<const std::byte*>(data);
  return at >= base_ && at < base_ + size_ && bytes <= size_t(base_ + size_ - at);
}

FutexEvent& ShmSegment::event(int rank) const {
  return reinterpret_cast<PaddedEvent*>(base_ + events_)[rank].event;
}

ShmSlot& ShmSegment::slot(int from, int to, int index) const {
  const size_t pair = size_t(from) * size_t(ranks_) + size_t(to);
  return reinterpret_cast<PaddedSlot*>(base_ + slots_)[pair * kSlots + size_t(index)].slot;
}

std::byte* ShmSegment::staging(int from, int to, int index) const {
  const size_t pair = size_t(from) * size_t(ranks_) + size_t(to);
  return base_ + staging_ + (pair * kSlots + size_t(index)) * ShmSlot::kStaging;
}

SumPlace& ShmSegment::meeting() const { return *reinterpret_cast<SumPlace*>(base_ + meeting_); }

std::byte* ShmSegment::arena(int rank) const {
  return base_ + arenas_ + size_t(rank) * arena_size_;
}

void ShmSegment::Abort(int rank, std::string_view reason) noexcept {
  if (header().claimed.exchange(1)) return;
  header().lost_rank = rank;
  std::snprintf(header().reason, sizeof(header().reason), "%.*s", int(reason.size()),
                reason.data());
  header().finished.store(1);
  for (int r = 0; r < ranks_; ++r) event(r).Notify();
  meeting().event().Notify();
}

bool ShmSegment::aborted() const { return header().finished.load(std::memory_order_acquire) != 0; }
int ShmSegment::lost_rank() const { return header().lost_rank; }
std::string ShmSegment::reason() const {
  return {header().reason, strnlen(header().reason, sizeof(header().reason))};
}

}  // namespace trireme
