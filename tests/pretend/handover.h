#pragma once
#include <condition_variable>
#include <mutex>
#include <span>
#include <vector>

#include "base/function_ref.h"

namespace trireme {

// Numbers that a queue's thread hands to the thread of RunShard, which sums them over all ranks:
// what a copy to the host, a wait and a copy back are on a device of its own.
class Handover {
 public:
  using Sum = FunctionRef<void(std::span<double>)>;

  // On the queue's thread: gives its numbers away and waits for the sums. Once a sum has failed
  // they stay what they are: whoever asked has the error.
  void operator()(std::span<double> values);
  void Close();  // no more of them, until the next Serve

  // On the thread of RunShard: sums what comes until it is closed. Throws what `sum` throws.
  void Serve(Sum sum);

 private:
  enum class State { kIdle, kGiven, kSummed, kClosed, kFailed };

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kIdle;  // guarded by mutex_
  std::vector<double> host_;    // whose turn it is, by state_
};

}  // namespace trireme
