#include "transport/shm/run.h"

#include "base/error.h"
#include "transport/forked.h"
#include "transport/shm/group.h"

namespace trireme {
namespace {

class ShmWorld : public World {
 public:
  ShmWorld(ShmSegment& segment, int rank, double timeout_s) : group_(segment, rank, timeout_s) {}
  Group& group() override { return group_; }
  Link& LinkTo(int) override { throw Error("no links"); }

 private:
  ShmGroup group_;
};

}  // namespace

int RunShm(const ShmSetup& setup, FunctionRef<int(World&)> fn) {
  ShmSegment segment(setup.ranks, setup.bytes);
  const auto run = [&](int rank) {
    ShmWorld world(segment, rank, setup.timeout_s);
    try {
      return fn(world);
    } catch (const std::exception& error) {
      segment.Abort(rank, error.what());
      throw;
    }
  };
  const auto lost = [&](int rank, const std::string& why) { segment.Abort(rank, why); };
  return RunForked({.ranks = setup.ranks, .run = run, .lost = lost, .signal = setup.signal});
}

}  // namespace trireme
