#pragma once
#include <atomic>
#include <cstdint>

#include "base/function_ref.h"
#include "strategy/step/replica.h"
#include "strategy/step/work.h"
#include "transport/shared_memory.h"

namespace trireme {

// Work for replicas that share memory and advance at a free pace without a server: the positions of
// an epoch are a number in that memory, and whoever is free takes the next few. Every position is
// taken once; an epoch ends when all that was taken is done.
//
// One object per worker, called on its thread. All workers of the group make one at the same time.
class SharedWorkQueue {
 public:
  // `lease`: positions at a time.
  SharedWorkQueue(Group& group, const Plan& plan, int64_t lease);
  ~SharedWorkQueue() { Stop(); }  // if an error ends this worker, the others soon miss it
  SharedWorkQueue(const SharedWorkQueue&) = delete;
  SharedWorkQueue& operator=(const SharedWorkQueue&) = delete;

  // Before the first Next, on all workers alike. Throws Error for numbers that cannot be.
  void Load(int64_t taken, int64_t epochs_told);

  // kStep: `work` is this worker's until Done. At kEpochEnd all have done theirs, and on worker 0
  // `drained` was called before anybody went on.
  Turn Next(Work& work, FunctionRef<void()> drained);
  void Done();
  void Stop();  // nobody takes any more
  void End();   // all have ended; stops first

  // Calls `look` while no other worker is between Next and Done: what was taken is done.
  void Quiet(FunctionRef<void()> look);

  int64_t taken() const;  // of the run: positions, in order
  int64_t epochs_told() const { return told_; }

 private:
  // In the memory of all, zeroed at first. Each part has cache lines of its own.
  struct Board {
    alignas(64) std::atomic<int64_t> taken;  // positions, and kStopped
    alignas(64) std::atomic<uint32_t> quiet;
    struct alignas(64) Seat {
      std::atomic<uint32_t> works;
    };
    Seat& seat(int worker) { return reinterpret_cast<Seat*>(this + 1)[worker]; }
  };

  bool TryTake(Work& work);
  int64_t EpochEnd() const;
  bool EpochIsOver() const;
  void MeetAtEpochEnd(FunctionRef<void()> drained);

  Group& group_;
  const Plan plan_;
  const int64_t lease_, total_;
  Board* board_;
  int64_t told_ = 0;  // epochs whose end this worker knows
};

}  // namespace trireme
