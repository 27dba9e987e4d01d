#include "study/run_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/start_thread.h"
#include "base/text.h"
#include "record/run_lock.h"
#include "study/statistics.h"

namespace trireme {
namespace {

constexpr double kLockPatience = 30;  // seconds

template <class Use>
void WhenFree(const std::string& folder, Use use) {
  if (!Exists(folder)) return;
  const Stopwatch watch;
  for (;;) {
    try {
      const RunLock lock(folder);
      return use();
    } catch (const Error&) {
      if (watch.seconds() > kLockPatience) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// What is left to do, and how long that takes: each as its kind took, or as all did.
class Agenda {
 public:
  explicit Agenda(const RunQueue& queue) : queue_(queue) {
    for (size_t i = 0; i < queue.count; ++i) {
      if (!queue.done(i)) left_.push_back(i);
    }
    if (left_.size() < queue.count) {
      queue.say(
          fmt::format("{} of {} runs are already done", queue.count - left_.size(), queue.count));
    }
  }

  // Takes one after another until there is none, somebody stops it or something fails.
  void Work(int slot, int slots) {
    std::unique_lock lock(mutex_);
    while (!failed_ && begun_ < left_.size() && !queue_.stopped() &&
           !(queue_.enough && queue_.enough())) {
      const size_t run = left_[begun_++];
      lock.unlock();
      const Stopwatch watch;
      std::string outcome;
      std::exception_ptr failed;
      try {
        outcome = queue_.run(run, slot, slots);
      } catch (const std::exception&) {
        failed = std::current_exception();
      }
      lock.lock();
      if (failed && !failed_) failed_ = failed;
      if (failed || queue_.stopped()) return;
      ++ended_;
      Took(run, watch.seconds());
      queue_.say(fmt::format("{}/{} {}{}", queue_.count - left_.size() + ended_, queue_.count,
                             outcome, TimeLeft()));
    }
  }

  void Fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!failed_) failed_ = std::move(error);
  }

  void Rethrow() const {
    if (failed_) std::rethrow_exception(failed_);
  }
  size_t left() const { return left_.size(); }

 private:
  void Took(size_t run, double seconds) {
    seconds_[queue_.kind(run)].push_back(seconds);
    all_.push_back(seconds);
  }

  // Of those that nobody has begun, and of one that somebody is at.
  std::string TimeLeft() const {
    if (ended_ == left_.size()) return "";
    double left = 0;
    for (size_t i = std::min(begun_, left_.size() - 1); i < left_.size(); ++i) {
      const auto own = seconds_.find(queue_.kind(left_[i]));
      left += SpreadOf(own == seconds_.end() ? all_ : own->second).median;
    }
    return fmt::format("; about {} left", FormatSeconds(left / queue_.parallel));
  }

  const RunQueue& queue_;
  std::vector<size_t> left_;
  std::mutex mutex_;  // guards what follows
  size_t begun_ = 0, ended_ = 0;
  std::map<size_t, std::vector<double>> seconds_;  // by kind
  std::vector<double> all_;
  std::exception_ptr failed_;
};

}  // namespace

int RunQueued(const RunQueue& queue) {
  Agenda agenda(queue);
  const int at_once = int(std::min<size_t>(size_t(queue.parallel), agenda.left()));
  if (at_once <= 1) {
    agenda.Work(0, 1);
  } else {
    std::vector<std::jthread> slots;
    try {
      for (int slot = 0; slot < at_once; ++slot) {
        slots.push_back(StartThread(fmt::format("thread {} of {} for runs", slot + 1, at_once),
                                    [&agenda, slot, at_once] { agenda.Work(slot, at_once); }));
      }
    } catch (const Error&) {
      agenda.Fail(std::current_exception());
    }
  }
  if (const int code = queue.stopped()) return code;
  agenda.Rethrow();
  return 0;
}

void AwaitFree(const std::string& folder) {
  WhenFree(folder, [] {});
}

void ClearRun(const std::string& folder) {
  WhenFree(folder, [&] { RemoveTree(folder); });
}

}  // namespace trireme
