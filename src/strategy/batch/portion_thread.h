#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "strategy/batch/batch_objective.h"
#include "strategy/batch/peers.h"

namespace trireme {

// A worker's portions, on a thread of its own: its stretch of the vectors is at hand meanwhile, and
// nobody waits for a portion that another worker has answered. Adds up some portions as a part,
// asks the leader whether it counts, and sends the owners of the stretches theirs.
//
// The methods are for the worker's thread; its own stretch of a part it takes from TakeParts, after
// Peers::Wake.
class PortionThread {
 public:
  struct Setup {
    PortionGradient& portions;  // is this thread's, but between AwaitIdle and Begin
    const Layout& layout;
    Peers& peers;
    std::function<int()> signal;  // that this rank got; 0: none
  };
  explicit PortionThread(Setup setup);
  ~PortionThread();

  void Begin(int64_t round, std::vector<float> weights);
  void Next(const Message& message);  // BatchWord::kNext
  void Over(int64_t round);           // nobody wants its portions any more
  void AwaitIdle();
  std::vector<Message> TakeParts();  // BatchWord::kPart; throws what ended the thread

 private:
  struct Answer {
    int64_t round = 0;
    bool counts = false;
    int portion = -1;
    bool few = false;
  };
  void Run();
  void Compute(int64_t round);
  bool AwaitAnswer(int64_t round, Answer& answer);
  void RunPortion(int portion);
  void Report(int64_t round, bool part);
  void SendPart(int64_t round);
  void DropPart();

  const Setup setup_;
  const int workers_;

  // The thread's.
  Buffer sum_;
  std::vector<int64_t> part_;  // portions in sum_
  bool reported_ = false;      // ... and the leader was asked about them
  PortionSums sums_;           // of them

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  int64_t wanted_round_ = 0, finished_round_ = 0, over_round_ = 0;
  std::vector<float> weights_;
  std::deque<Answer> answers_;
  std::vector<Message> own_;
  bool ends_ = false;
  std::exception_ptr error_;

  std::jthread thread_;  // last, so that it ends before what it uses
};

}  // namespace trireme
