#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/observer.h"
#include "base/start_thread.h"
#include "flat/work_times.h"

namespace trireme {

// Marks of a task's own work: that it waited for computing before is no communication.
struct CommWork {
  Event began, ended;
};

// A communication thread: runs tasks in the order given, keeps its exception for whoever drains it.
// `fail` is told at once when a task throws, and when a communication thread is destroyed with
// tasks left (a step that an exception ended): it wakes those who wait for what will not come. What
// a task waits for has a deadline of its own. Knows how long its tasks took; `spans`, if not null,
// gets each of them.
template <class Task>
class CommThread {
 public:
  using Fail = std::function<void(std::string_view reason)>;
  CommThread(std::function<CommWork(Task&)> run, Fail fail, SpanSink* spans = nullptr,
             Track track = Track::kCommunication)
      : run_(std::move(run)), fail_(std::move(fail)), spans_(spans), track_(track) {
    tasks_.reserve(256);
    thread_ = StartThread("a communication thread", [this] { Run(); });
  }
  ~CommThread() {
    {
      std::lock_guard lock(mutex_);
      if (!tasks_.empty()) fail_("left in the middle of a step");
      stopping_ = true;
    }
    changed_.notify_all();
  }

  // Any thread. Never blocks; no memory is taken once as many tasks have waited before.
  void Push(Task task) {
    const int64_t step = spans_ && spans_->on() ? spans_->step() : kUntraced;
    {
      std::lock_guard lock(mutex_);
      tasks_.push_back({std::move(task), step});
    }
    changed_.notify_all();
  }

  // Waits until all tasks are done; throws what a task threw.
  void Drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return error_ || tasks_.empty(); });
    if (error_) std::rethrow_exception(error_);
  }

  double busy_s() const {
    std::lock_guard lock(mutex_);
    return busy_.seconds();
  }

 private:
  static constexpr int64_t kUntraced = -1;
  struct Entry {
    Task task;
    int64_t step;  // in which it was given
  };

  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || (!error_ && done_ < tasks_.size()); });
      if (stopping_) return;
      Entry entry = std::move(tasks_[done_]);
      const int number = int(done_);
      lock.unlock();
      CommWork work;
      std::exception_ptr error;
      try {
        work = run_(entry.task);
      } catch (const std::exception& e) {
        error = std::current_exception();
        fail_(e.what());
      }
      lock.lock();
      if (error) {
        error_ = error;
      } else {
        SpanSink* const spans = entry.step == kUntraced ? nullptr : spans_;
        busy_.Add(work.began, work.ended, 1,
                  {spans, track_, SpanKind::kBucket, entry.step, number});
      }
      if (++done_ == tasks_.size()) {
        tasks_.clear();
        done_ = 0;
      }
      if (error_ || tasks_.empty()) changed_.notify_all();
    }
  }

  const std::function<CommWork(Task&)> run_;
  const Fail fail_;
  SpanSink* const spans_;
  const Track track_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<Entry> tasks_;  // empty: all are done
  size_t done_ = 0;           // of tasks_; the next one may be running
  WorkTimes busy_;
  bool stopping_ = false;
  std::exception_ptr error_;
  std::jthread thread_;  // last: joins before the rest goes
};

}  // namespace trireme
