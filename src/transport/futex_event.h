#pragma once
#include <atomic>
#include <cstdint>

#include "transport/deadline.h"

namespace trireme {

// Wakes threads of one process, or of several that share the memory it lies in. Zeroed memory is
// an event. Whoever waits looks at Count first, then at what it waits for, then waits: no
// notification is missed.
class FutexEvent {
 public:
  uint32_t Count() const { return count_.load(std::memory_order_acquire); }
  void Notify();
  // Until notified since Count was `count`, or the deadline. Spins for a moment first where that is
  // shorter than falling asleep (`spins`, see SpinsFor).
  void Wait(uint32_t count, Deadline deadline, int spins);
  bool Spin(uint32_t count, int spins) const;  // only that; false: not notified yet

 private:
  std::atomic<uint32_t> count_{0}, sleepers_{0};
};

// How long to spin where `waiting` threads may do so at once: not at all where there are more of
// them than processors, because the one that is waited for would not run.
int SpinsFor(int waiting);

}  // namespace trireme
