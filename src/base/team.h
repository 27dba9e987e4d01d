#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/function_ref.h"

namespace trireme {

// Threads that work on one thing together. The caller takes part as thread 0; between runs the
// others spin for some microseconds, then sleep. One thread at a time may call Run.
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

  FunctionRef<void(int)> work_;
  std::atomic<uint32_t> round_{0};    // goes up by one with each run
  std::atomic<uint32_t> running_{0};  // workers that have not finished this round
  bool stop_ = false;                 // read after round_ has changed
  std::mutex mutex_;
  std::exception_ptr error_;  // guarded by mutex_
  std::vector<std::jthread> workers_;
};

// Calls work(begin, end) on contiguous blocks of [0, count) that are at least `grain` long, on at
// most every thread of the team; little work runs on the caller alone, without a hand-off.
template <class F>
void ParallelFor(Team& team, size_t count, size_t grain, const F& work) {
  const size_t blocks = std::min<size_t>(team.size(), count / std::max<size_t>(grain, 1));
  if (blocks <= 1) {
    if (count > 0) work(size_t{0}, count);
    return;
  }
  team.Run([&](int thread) {
    const size_t block = static_cast<size_t>(thread);
    if (block < blocks) work(count * block / blocks, count * (block + 1) / blocks);
  });
}

}  // namespace trireme
