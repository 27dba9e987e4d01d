// Memory of all ranks of an MPI job, by windows.
#include "transport/mpi/window.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "transport/check/what_of.h"
#include "transport/collective/broadcast.h"
#include "transport/mpi/testing.h"

namespace trireme {
namespace {

constexpr double kPatience_s = 60;  // for what must happen

// What the version says is in all stripes, and each of them is of one version.
void StripesAreOfOneVersionEach(World& world) {
  constexpr int kAdds = 30;
  Memory& memory = *world.memory();
  EXPECT_EQ(memory.way(), "MPI windows of 3 ranks");
  const Region region = memory.Create("w", RegionType::kF32, 90'001);
  if (world.rank() > 0) {
    const std::vector<float> ones(region.length, 1);
    for (int i = 0; i < kAdds; ++i) memory.Accumulate(region, 0, ones).Wait();
    Barrier(world.group(), 5);
    return;
  }
  const uint64_t all = uint64_t(kAdds) * uint64_t(world.size() - 1);
  std::vector<float> got(region.length);
  for (uint64_t version = 0; version < all;) {
    memory.Wait(region, version + 1, After(kPatience_s));
    memory.Get(region, 0, got, &version).Wait();
    for (size_t k = 0; k < 3; ++k) {
      const size_t begin = 90'001 / 3 * k + 90'001 % 3 * k / 3;
      const size_t end = 90'001 / 3 * (k + 1) + 90'001 % 3 * (k + 1) / 3;
      const std::set<float> values(got.begin() + int64_t(begin), got.begin() + int64_t(end));
      ASSERT_EQ(values.size(), 1u) << k;
      ASSERT_GE(*values.begin(), float(version)) << k;
      ASSERT_LE(*values.begin(), float(all)) << k;
    }
    ASSERT_EQ(got[0], float(version));
  }
  Barrier(world.group(), 5);
}

// A rank whose threads do something else: what others want of its part comes all the same.
void AnOwnerThatMakesNoCallsIsServed(World& world) {
  Memory& memory = *world.memory();
  const Region region = memory.Create("w", RegionType::kF32, 2'000'000);
  Barrier(world.group(), 5);
  if (world.rank() == 0) {
    std::vector<float> values(region.length, 2);
    memory.Accumulate(region, 0, values).Wait();
    memory.Get(region, 0, values).Wait();
    EXPECT_EQ(std::accumulate(values.begin(), values.end(), 0.0), 4e6);
    const Region done = memory.Create("done", RegionType::kI64, 1);
    memory.FetchAdd(done, 0, 1);
  } else {  // looks only at what lies with rank 0
    memory.Open("done", After(kPatience_s));
  }
  Barrier(world.group(), 5);
}

// The job ends for all, and says why.
void ARankThatFailsEndsTheJob(World& world) {
  Memory& memory = *world.memory();
  const Region region = memory.Create("n", RegionType::kI64, 1);
  memory.FetchAdd(region, 0, 1);
  Barrier(world.group(), 5);
  if (world.rank() == 1) throw Error("no more paper");
  std::vector<std::byte> word(8);
  world.group().Receive(1, 6, word).Wait();
}

constexpr ConformanceCase kOwn[] = {
    {"StripesAreOfOneVersionEach", 3, StripesAreOfOneVersionEach},
    {"AnOwnerThatMakesNoCallsIsServed", 3, AnOwnerThatMakesNoCallsIsServed},
    {"ARankThatFailsEndsTheJob", 2, ARankThatFailsEndsTheJob, 60, "no more paper"}};

// All but one: a get has each stripe as of one version, not all of them.
std::vector<ConformanceCase> Cases() {
  std::vector<ConformanceCase> cases;
  for (const ConformanceCase& each : MemoryCases()) {
    if (std::string_view(each.name) != "NobodySeesHalfOfAnAdd") cases.push_back(each);
  }
  cases.insert(cases.end(), std::begin(kOwn), std::end(kOwn));
  return cases;
}

void Share(World& world) { ASSERT_TRUE(world.ShareMemory(uint64_t{64} << 20)); }

class MpiWindows : public testing::TestWithParam<ConformanceCase> {};
TEST_P(MpiWindows, Conform) {
  CheckCase(GetParam(), [](int ranks, double, FunctionRef<void(World&)>) {
    RunCase(Mpirun(), GetParam().name, ranks);
  });
}
INSTANTIATE_TEST_SUITE_P(Cases, MpiWindows, testing::ValuesIn(Cases()), CaseName);

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) {
  return trireme::RunMpiTest(argc, argv, trireme::Cases(), trireme::Share);
}
