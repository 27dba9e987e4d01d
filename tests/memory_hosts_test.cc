// Strategies whose weights lie in memory (strategy.centre = "memory") on two machines.
#include <csignal>

#include "support/hosts_test.h"

namespace trireme::whole {
namespace {

// Ranks of rank 0's machine map the memory, those of the other one dial it; both say so. Whoever is
// killed, every position counts once.
class MemoryOnHostsTest : public RanksHostsTest, public testing::WithParamInterface<Served> {};
TEST_P(MemoryOnHostsTest, WorkersOfBothHostsShareIt) {
  constexpr int64_t kEpochs = 300;
  Write("hosts", "10.78.0.1 3  # rank 0 leases, 1 and 2 train\n10.78.0.2 2\n");
  const Words words = Words{"train",     "iris",
                            "--epochs",  std::to_string(kEpochs),
                            "--threads", "1",
                            "--set",     "strategy.snapshot_s=0.1",
                            "--set",     "trainer.evaluate_every=100",
                            "--set",     "trainer.checkpoint_epochs=0",
                            "--set",     "emulate.step_ms=0.3"} +
                      GetParam().words;
  auto first = StartOn(0, words + Words{"--out", "a"});
  auto second = StartOn(1, words);
  const auto pause = [] { return 0.3; };
  int killed = KillRanks(*second, {"trireme-r3"}, pause);
  killed += KillRanks(*first, {"trireme-server", "trireme-r1"}, pause);
  const Outcome there = second->Wait(kTimeout), here = first->Wait(kTimeout);
  EXPECT_EQ(here.exit_code, 0) << here.err;
  EXPECT_EQ(there.exit_code, 0) << there.err;
  EXPECT_GE(killed, 3) << "the run was over too soon";
  const auto names = [](const Outcome& outcome, const std::string& way) {
    return outcome.err.find("the way to the common memory: " + way) != std::string::npos;
  };
  EXPECT_TRUE(names(here, "mapped; elsewhere: tcp to 10.78.0.1:7118")) << here.err;
  EXPECT_TRUE(names(there, "tcp to 10.78.0.1:7118")) << there.err;
  ExpectIrisCountedOnce("a", kEpochs);
  EXPECT_GT(Number("a", "test_accuracy"), 0.85);
  EXPECT_EQ(Leftovers(Now() + 40), "");
}
INSTANTIATE_TEST_SUITE_P(
    Strategies, MemoryOnHostsTest,
    testing::Values(Served{"easgd", {"--strategy", "easgd", "--set", "strategy.centre=memory"}},
                    Served{"hybrid", {"--strategy", "hybrid", "--set", "strategy.groups=2"}},
                    Served{"pgas", {"--strategy", "pgas"}}),
    testing::PrintToStringParamName());

}  // namespace
}  // namespace trireme::whole
