#include "engine/cuda/pinned.h"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace trireme::cuda {
namespace {

std::byte* PageOf(std::byte* at, bool round_up) {
  const auto page = uintptr_t(sysconf(_SC_PAGESIZE));
  return reinterpret_cast<std::byte*>((uintptr_t(at) + (round_up ? page - 1 : 0)) / page * page);
}

bool Pin(std::byte* begin, std::byte* end) {
  const bool pinned =
      cudaHostRegister(begin, size_t(end - begin), cudaHostRegisterPortable) == cudaSuccess;
  if (!pinned) cudaGetLastError();
  return pinned;
}

}  // namespace

PinnedPages& PinnedPages::OfProcess() {
  static PinnedPages pages;
  return pages;
}

void PinnedPages::Add(std::span<std::byte> memory) {
  if (memory.empty()) return;
  std::byte* begin = PageOf(memory.data(), false);
  std::byte* end = PageOf(memory.data() + memory.size(), true);
  const std::lock_guard lock(mutex_);
  // The first stretch that reaches beyond `begin`.
  auto at = stretches_.upper_bound(begin);
  if (at != stretches_.begin() && std::prev(at)->second.end > begin) --at;
  if (at != stretches_.end() && at->first <= begin && end <= at->second.end) {
    ++at->second.users;
    return;
  }
  // Nobody copies while a stretch grows: a copy that is on its way ends first.
  if (at != stretches_.end() && at->first < end && cudaDeviceSynchronize() != cudaSuccess) {
    cudaGetLastError();
  }
  int users = 1;
  while (at != stretches_.end() && at->first < end) {
    begin = std::min(begin, at->first);
    end = std::max(end, at->second.end);
    users += at->second.users;
    if (at->second.pinned && cudaHostUnregister(at->first) != cudaSuccess) cudaGetLastError();
    at = stretches_.erase(at);
  }
  stretches_[begin] = {end, users, Pin(begin, end)};
}

void PinnedPages::Remove(std::span<std::byte> memory) noexcept {
  if (memory.empty()) return;
  const std::lock_guard lock(mutex_);
  auto at = stretches_.upper_bound(memory.data());
  if (at == stretches_.begin()) return;
  --at;
  if (--at->second.users > 0) return;
  if (at->second.pinned && cudaHostUnregister(at->first) != cudaSuccess) cudaGetLastError();
  stretches_.erase(at);
}

}  // namespace trireme::cuda
