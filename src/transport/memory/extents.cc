#include "transport/memory/extents.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace trireme {

uint64_t RoundUpToPage(uint64_t bytes) { return (bytes + kBoxPage - 1) / kBoxPage * kBoxPage; }

std::vector<Extents::Extent> Extents::Used(const MemoryImage& image) {
  std::vector<Extent> used;
  for (uint32_t r = 0; r < kMostRegions; ++r) {
    const RegionRecord& region = image.region(r);
    if (region.used.load(std::memory_order_acquire) == 0) continue;
    used.push_back({region.data, region.data + region.capacity});
    used.push_back({region.ring, region.ring + RoundUpToPage(kKeptNotes * sizeof(RingEntry))});
  }
  for (uint32_t s = 0; s < kMostSessions; ++s) {
    const SessionRecord& session = image.session(s);
    if (session.client.load(std::memory_order_acquire) == 0 || session.slot_bytes == 0) continue;
    used.push_back({session.slot, session.slot + session.slot_bytes});
  }
  std::sort(used.begin(), used.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  return used;
}

bool Extents::Overlap(const MemoryImage& image) {
  const std::vector<Extent> used = Used(image);
  // In the middle of a swap one place stands in two records; the journal knows both.
  const bool swapping = image.header().journal.running.load(std::memory_order_acquire) != 0;
  for (size_t i = 1; i < used.size(); ++i) {
    const bool same = used[i - 1].begin == used[i].begin && used[i - 1].end == used[i].end;
    if (used[i - 1].end > used[i].begin && !(swapping && same)) return true;
  }
  return false;
}

uint64_t Extents::used() const {
  uint64_t sum = 0;
  for (const Extent& extent : Used(image_)) sum += extent.end - extent.begin;
  return sum;
}

uint64_t Extents::TakeAmong(std::vector<Extent>& used, uint64_t bytes, bool zeroed) {
  bytes = RoundUpToPage(std::max<uint64_t>(bytes, 1));
  BoxHeader& head = image_.header();
  uint64_t place = head.arena;
  auto next = used.begin();
  while (next != used.end() && next->begin - place < bytes) place = (next++)->end;
  if (next == used.end() && image_.bytes() - place < bytes) {
    uint64_t taken = 0;
    for (const Extent& extent : used) taken += extent.end - extent.begin;
    throw Error("the memory box has no room for {}: {} of {} are in use (--size)",
                FormatBytes(double(bytes)), FormatBytes(double(taken)),
                FormatBytes(double(image_.bytes() - head.arena)));
  }
  if (image_.fd() >= 0) {
    const int error = posix_fallocate(image_.fd(), off_t(place), off_t(bytes));
    if (error) {
      throw Error("{}: no room on the disk for {} more: {}", image_.path(),
                  FormatBytes(double(bytes)), std::strerror(error));
    }
  }
  if (zeroed && place < head.touched) {
    std::memset(image_.at(place), 0, std::min(bytes, head.touched - place));
  }
  head.touched = std::max(head.touched, place + bytes);
  used.insert(next, {place, place + bytes});
  return place;
}

uint64_t Extents::Take(uint64_t bytes, bool zeroed) {
  std::vector<Extent> used = Used(image_);
  return TakeAmong(used, bytes, zeroed);
}

std::pair<uint64_t, uint64_t> Extents::TakeTwo(uint64_t first, uint64_t second) {
  std::vector<Extent> used = Used(image_);
  const uint64_t a = TakeAmong(used, first, true);
  return {a, TakeAmong(used, second, true)};
}

}  // namespace trireme
