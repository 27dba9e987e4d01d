#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/function_ref.h"

namespace trireme {

// Threads that work on one thing together. The caller is thread 0; between runs the others spin,
// then yield their cores for some 75 microseconds, then sleep. One thread at a time may call Run.
class Team {
 public:
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls work(thread) once on every thread and returns when all are done. The first exception of
  // a thread is thrown again here.
  void Run(FunctionRef<void(int thread)> work);

 private:
  void Work(int thread);
  void Dismiss();  // the workers end

  FunctionRef<void(int)> work_;
  std::atomic<uint32_t> round_{0};    // goes up by one with each run
  std::atomic<uint32_t> running_{0};  // workers that have not finished this round
  bool stop_ = false;                 // read after round_ has changed
  std::mutex mutex_;
  std::exception_ptr error_;  // guarded by mutex_
  std::vector<std::jthread> workers_;
};

// Of `left` pieces of work as many as one of `parts` threads takes at once: a share of what is
// left, so that all are ready at about the same time, whatever each piece costs and whenever they
// come (guided self-scheduling; Polychronopoulos, Kuck 1987). At least `least`, unless that is all.
inline int64_t ShareOf(int64_t left, int64_t parts, int64_t least) {
  return std::min(left, std::max(left / parts, least));
}

// Calls work(begin, end) or work(begin, end, thread) on contiguous pieces of [0, count) that are at
// least `grain` long, on at most every thread of the team; little work runs on the caller alone,
// without a hand-off. Threads take pieces as they come along: one that is held up takes fewer.
// Which thread gets which, and where pieces end, differs from run to run.
template <class F>
void ParallelFor(Team& team, size_t count, size_t grain, const F& work) {
  const auto call = [&](size_t begin, size_t end, size_t thread) {
    if constexpr (std::is_invocable_v<const F&, size_t, size_t, size_t>) {
      work(begin, end, thread);
    } else {
      work(begin, end);
    }
  };
  grain = std::max<size_t>(grain, 1);
  if (team.size() == 1 || count < 2 * grain) {
    if (count > 0) call(0, count, 0);
    return;
  }
  constexpr size_t kLine = 16;  // pieces of many values end where cache lines do
  std::atomic<size_t> next{0};
  team.Run([&](int thread) {
    size_t begin = next.load(std::memory_order_relaxed);
    while (begin < count) {
      // Half of an equal share: the slowest thread's first piece must not be the last to end.
      size_t piece = ShareOf(count - begin, 2 * team.size(), grain);
      if (piece >= kLine * 16) piece = piece / kLine * kLine;
      if (!next.compare_exchange_weak(begin, begin + piece, std::memory_order_relaxed)) continue;
      call(begin, begin + piece, static_cast<size_t>(thread));
      begin = next.load(std::memory_order_relaxed);
    }
  });
}

}  // namespace trireme
