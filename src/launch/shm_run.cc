#include "launch/shm_run.h"

#include <unistd.h>

#include <mutex>

#include "base/error.h"
#include "launch/loopback.h"
#include "transport/forked.h"
#include "transport/shm/group.h"
#include "transport/tcp/world.h"

namespace trireme {
namespace {

// The group in shared memory; links, for the few strategies that have a server, over loopback.
class ShmWorld : public World {
 public:
  ShmWorld(ShmSegment& segment, const TcpSetup& links)
      : group_(segment, links.rank, links.timeout_s), setup_(links) {}
  Group& group() override { return group_; }
  Link& LinkTo(int rank) override {
    std::lock_guard lock(mutex_);
    if (!links_) links_ = JoinTcp(setup_);
    return links_->LinkTo(rank);
  }
  void Abort(std::string_view reason) noexcept {
    group_.Abort(reason);
    std::lock_guard lock(mutex_);
    if (links_) links_->group().Abort(reason);
  }

 private:
  ShmGroup group_;
  const TcpSetup setup_;
  std::mutex mutex_;
  std::unique_ptr<World> links_;  // since the first LinkTo; guarded by mutex_
};

}  // namespace

int RunShm(const ShmSetup& setup, FunctionRef<int(World&)> fn) {
  ShmSegment segment(setup.ranks, setup.bytes);
  LoopbackPlace place;
  const TcpSetup links = place.In({.size = setup.ranks, .timeout_s = setup.timeout_s});
  const auto run = [&](int rank) {
    TcpSetup own = links;
    own.rank = rank;
    if (rank != 0) {
      close(own.listener);
      own.listener = -1;
    }
    ShmWorld world(segment, own);
    try {
      return fn(world);
    } catch (const std::exception& error) {
      world.Abort(error.what());
      throw;
    }
  };
  const auto lost = [&](int rank, const std::string& why) { segment.Abort(rank, why); };
  return RunForked({.ranks = setup.ranks, .run = run, .lost = lost, .signal = setup.signal});
}

}  // namespace trireme
