#include "base/team.h"

#include <fmt/core.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/start_thread.h"

namespace trireme {
namespace {

// Two waits before a thread sleeps, because to wake it takes longer than many a product: 6 to 20 us
// where the system is a guest of another one. Spinning covers the gap between two operations;
// giving the core away again and again, the short operations of one thread, and costs programs and
// ranks that share the machine little, because they are served first.
constexpr int kSpins = 300;   // about 15 us
constexpr int kYields = 200;  // about 60 us if nobody else wants the core

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // `yield` does nothing on most cores
#endif
}

// Returns when value is no longer `old`.
void AwaitChange(const std::atomic<uint32_t>& value, uint32_t old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    Pause();
  }
  for (int i = 0; i < kYields; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    std::this_thread::yield();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

Team::Team(int threads) {
  TRIREME_ASSERT(threads >= 1);
  workers_.reserve(threads - 1);
  try {
    for (int thread = 1; thread < threads; ++thread) {
      workers_.push_back(StartThread(fmt::format("thread {} of {}", thread + 1, threads),
                                     [this, thread] { Work(thread); }));
    }
  } catch (const Error& error) {
    Dismiss();  // or those that were started would wait for work for ever
    throw Error("{}; lower trainer.threads (--threads)", error.what());
  }
}

Team::~Team() { Dismiss(); }

void Team::Dismiss() {
  stop_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
}

void Team::Run(FunctionRef<void(int)> work) {
  if (workers_.empty()) return work(0);
  work_ = work;
  running_.store(static_cast<uint32_t>(workers_.size()), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  std::exception_ptr own;
  try {
    work(0);
  } catch (...) {
    own = std::current_exception();
  }
  while (const uint32_t left = running_.load(std::memory_order_acquire))
    AwaitChange(running_, left);
  const std::exception_ptr other = std::exchange(error_, nullptr);  // all workers are done
  if (own || other) std::rethrow_exception(own ? own : other);
}

void Team::Work(int thread) {
  for (uint32_t round = 0;; ++round) {
    AwaitChange(round_, round);
    if (stop_) return;
    try {
      work_(thread);
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_all();
  }
}

}  // namespace trireme
