#include "transport/futex_event.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "base/cores.h"

namespace trireme {
namespace {

constexpr int kSpins = 500;  // some 20 us where a pause takes 40 ns

void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

long Futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, timeout, nullptr,
                 0);
}

}  // namespace

void FutexEvent::Notify() {
  count_.fetch_add(1);
  if (sleepers_.load() > 0) Futex(count_, FUTEX_WAKE, INT_MAX, nullptr);
}

bool FutexEvent::Spin(uint32_t count, int spins) const {
  for (int i = 0; i < spins; ++i) {
    if (Count() != count) return true;
    Relax();
  }
  return false;
}

void FutexEvent::Wait(uint32_t count, Deadline deadline, int spins) {
  if (Spin(count, spins)) return;
  const auto left = deadline - std::chrono::steady_clock::now();
  if (left <= Deadline::duration::zero()) return;
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
  const timespec timeout{.tv_sec = time_t(ns / 1'000'000'000), .tv_nsec = long(ns % 1'000'000'000)};
  sleepers_.fetch_add(1);
  if (count_.load() == count) Futex(count_, FUTEX_WAIT, count, &timeout);
  sleepers_.fetch_sub(1);
}

int SpinsFor(int waiting) { return waiting <= UsableCores(ReadCoreFacts()).count ? kSpins : 0; }

}  // namespace trireme
