#pragma once
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/observer.h"
#include "health/stall.h"
#include "health/straggler.h"
#include "transport/group.h"

namespace trireme {

// Watches one rank among several that advance in step. Every second each rank's watch tells rank
// 0's what its rank does and what its time went into. Rank 0's names a rank that is chronically
// late in the log; if no rank has moved for `stall_s` it says what each of them waits for, aborts
// the group and keeps the verdict. A rank that does not come out of an aborted group ends its
// process, as nothing else would. A link that is silent is named by whoever does not hear.
//
// Two threads: one counts time and never blocks, one talks. The methods are for the rank's thread.
class RankWatch {
 public:
  struct Setup {
    Group& group;
    double stall_s = 0;  // 0: only late ranks are named
    const Log& log;
    std::function<void()> give_up;  // null: the process ends with exit code 1
  };
  explicit RankWatch(Setup setup);
  ~RankWatch();  // without End: after the group was aborted

  Status& status() { return status_; }
  void Start();  // all members call it; what comes before is not watched
  // Somebody asks for Publish. One relaxed load.
  bool wants() const { return wants_.load(std::memory_order_relaxed); }
  void Publish(const RankShare& totals, int64_t step);
  // Of each member, how many seconds it was not heard, in all.
  std::vector<double> Silences();
  void End();  // all members call it, when nobody waits for another any more
  // Why the run ended, if it was a stall: `error` is what came of it here. Empty: it was none.
  std::string Verdict(const std::exception& error);

 private:
  struct Report;
  struct Peer;

  bool is_root() const { return setup_.group.rank() == 0; }
  void Count(std::stop_token stop);
  void CountSilences();
  bool Stalled() const;
  void Fail();
  void Talk(std::stop_token stop);
  void Tell(std::stop_token stop);
  void Hear();
  Report MakeReport(bool leaves) const;
  Standing StandingOf(int rank) const;
  void JudgeTimes();

  const Setup setup_;
  const int size_;
  Status status_;
  std::atomic<bool> wants_ = false;

  std::mutex mutex_;  // guards all below but the threads
  std::condition_variable_any changed_;
  bool leaving_ = false;
  bool finished_ = false;  // the group is
  double since_s_ = 0;     // this rank has not moved
  double talking_s_ = 0;   // since a report was begun that has not arrived; rank 0: that is awaited
  int awaited_ = -1;       // rank 0: whose
  double lost_s_ = 0;      // this rank stands, and the group is finished
  std::string verdict_;
  std::vector<Peer> peers_;
  RankShare totals_;
  int64_t published_step_ = -1;
  double published_s_ = 0;
  StragglerWatch late_;
  std::optional<Straggler> named_;
  std::jthread clock_, talk_;
};

}  // namespace trireme
