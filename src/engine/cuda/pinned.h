#pragma once
#include <cstddef>
#include <map>
#include <mutex>
#include <span>

namespace trireme::cuda {

// Host memory of others that cards of this process reach by themselves. The system pins whole
// pages, each once, and a copy must not cross two pinnings: stretches that have a page in common
// become one. Thread-safe.
class PinnedPages {
 public:
  static PinnedPages& OfProcess();  // pages are the process's, whichever card they are for

  // Where the system refuses, copies are slower and nothing else changes.
  void Add(std::span<std::byte> memory);
  void Remove(std::span<std::byte> memory) noexcept;

 private:
  struct Stretch {
    std::byte* end;
    int users;
    bool pinned;
  };
  std::mutex mutex_;
  std::map<std::byte*, Stretch> stretches_;  // by begin, whole pages; guarded by mutex_
};

}  // namespace trireme::cuda
