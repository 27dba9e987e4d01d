#include "transport/threads/run.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/error.h"
#include "base/start_thread.h"
#include "transport/first_error.h"
#include "transport/threads/hub.h"
#include "transport/threads/thread_link.h"

namespace trireme {
namespace {

// What the ranks of one run share: the hub, and a wire for each pair that asks for one.
class ThreadRun {
 public:
  ThreadRun(int ranks, double timeout_s) : hub_(ranks, timeout_s) {}

  Hub& hub() { return hub_; }

  Link& LinkTo(int from, int to) {
    TRIREME_ASSERT(from != to && to >= 0 && to < hub_.size());
    const bool server = from < to;
    std::lock_guard lock(mutex_);
    auto& wire = wires_[std::minmax(from, to)];
    if (!wire) {
      wire = std::make_unique<ThreadLink>(hub_.timeout_s(), hub_.timeout_s());
      if (!reason_.empty()) wire->Abort(reason_);
    }
    return server ? wire->server() : wire->client();
  }

  void Fail(int rank, std::exception_ptr error, std::string_view what) noexcept {
    hub_.Abort(rank, what);
    first_error_.Keep(rank, std::move(error));
    std::lock_guard lock(mutex_);
    if (!reason_.empty()) return;
    reason_ = fmt::format("rank {} of {} is lost: {}", rank, hub_.size(), what);
    for (auto& [ranks, wire] : wires_) wire->Abort(reason_);
  }

  void Rethrow() { first_error_.Rethrow(hub_.size()); }

 private:
  Hub hub_;
  FirstError first_error_;
  std::mutex mutex_;  // guards all below
  std::map<std::pair<int, int>, std::unique_ptr<ThreadLink>> wires_;
  std::string reason_;
};

class ThreadWorld : public World {
 public:
  ThreadWorld(ThreadRun& run, int rank) : run_(run), group_(run.hub(), rank) {}
  Group& group() override { return group_; }
  Link& LinkTo(int rank) override { return run_.LinkTo(group_.rank(), rank); }

 private:
  ThreadRun& run_;
  ThreadGroup group_;
};

void RunRank(ThreadRun& run, int rank, FunctionRef<void(World&)> fn) noexcept {
  try {
    ThreadWorld world(run, rank);
    fn(world);
  } catch (const std::exception& error) {
    run.Fail(rank, std::current_exception(), error.what());
  }
}

}  // namespace

void RunRanks(int ranks, double timeout_s, FunctionRef<void(World&)> fn) {
  TRIREME_ASSERT(ranks >= 1);
  ThreadRun run(ranks, timeout_s);
  if (ranks == 1) {
    ThreadWorld world(run, 0);
    fn(world);
    return;
  }
  {
    std::vector<std::jthread> threads;
    threads.reserve(ranks);
    try {
      for (int r = 0; r < ranks; ++r) {
        threads.push_back(StartThread(fmt::format("the thread of rank {} of {}", r, ranks),
                                      [&run, r, fn] { RunRank(run, r, fn); }));
      }
    } catch (Error& error) {
      error.Add("transport.ranks");
      run.Fail(int(threads.size()), std::current_exception(), error.what());
    }
  }
  run.Rethrow();
}

}  // namespace trireme
