// The way `mapped`: between threads, between processes that are forked after the memory was mapped,
// and between processes that open the box's file.
#include "transport/check/conformance.h"

#include "base/files.h"
#include "transport/check/with_memory.h"
#include "transport/forked.h"
#include "transport/memory/box.h"
#include "transport/memory/mapped.h"
#include "transport/shm/group.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

constexpr double kTimeout_s = 60;  // of a machine with much to do
const MemoryBoxSetup kSetup = {.bytes = size_t{64} << 20, .threads = 2, .timeout_s = kTimeout_s};

class Mapped : public testing::TestWithParam<ConformanceCase> {};

TEST_P(Mapped, ConformsBetweenThreads) {
  CheckCase(GetParam(), [](int ranks, double timeout_s, FunctionRef<void(World&)> fn) {
    MemoryBox box(kSetup);
    RunRanks(ranks, timeout_s, [&](World& world) {
      const auto memory = box.Connect();
      WithMemory own(world, *memory);
      fn(own);
    });
  });
}

class ForkedWorld : public World {
 public:
  ForkedWorld(ShmSegment& segment, int rank, double timeout_s) : group_(segment, rank, timeout_s) {}
  Group& group() override { return group_; }
  Link& LinkTo(int) override { throw Error("no links here"); }

 private:
  ShmGroup group_;
};

// Rank 0's process keeps the box.
void RunForkedRanks(int ranks, double timeout_s, const std::string& file,
                    FunctionRef<void(World&)> fn) {
  ShmSegment segment(ranks, 1 << 20);
  const auto image =
      file.empty() ? MemoryImage::Anonymous(kSetup.bytes) : MemoryImage::File(file, kSetup.bytes);
  const auto run = [&](int rank) {
    ForkedWorld world(segment, rank, timeout_s);
    std::unique_ptr<MemoryBox> box;
    if (rank == 0) box = std::make_unique<MemoryBox>(image, kSetup);
    {
      const auto memory =
          file.empty() ? ConnectMapped(image, kTimeout_s) : ConnectMappedFile(file, kTimeout_s);
      WithMemory own(world, *memory);
      fn(own);
    }
    std::vector<int> done(1);  // the box stays until all are done
    for (int r = 1; r < ranks; ++r) {
      if (rank == 0) world.group().Receive(r, 9, std::as_writable_bytes(std::span(done))).Wait();
      if (rank == r) world.group().Send(0, 9, std::as_bytes(std::span(done))).Wait();
    }
    return 0;
  };
  const auto lost = [&](int rank, const std::string& why) { segment.Abort(rank, why); };
  RunForked({.ranks = ranks, .run = run, .lost = lost});
}

TEST_P(Mapped, ConformsBetweenForkedProcesses) {
  CheckCase(GetParam(), [](int ranks, double timeout_s, FunctionRef<void(World&)> fn) {
    RunForkedRanks(ranks, timeout_s, "", fn);
  });
}

TEST_P(Mapped, ConformsByTheFileOfABox) {
  const TemporaryDirectory folder;
  CheckCase(GetParam(), [&](int ranks, double timeout_s, FunctionRef<void(World&)> fn) {
    RunForkedRanks(ranks, timeout_s, folder / "box", fn);
  });
}

INSTANTIATE_TEST_SUITE_P(Cases, Mapped, testing::ValuesIn(MemoryCases()), CaseName);

}  // namespace
}  // namespace trireme
