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
                    Served{"hogwild",
                           {"--strategy", "hogwild", "--set", "strategy.centre=memory", "--lr",
                            "0.02", "--set", "optimizer.momentum=0"}},
                    Served{"dogwild",
                           {"--strategy", "dogwild", "--set", "strategy.centre=memory", "--lr",
                            "0.02", "--set", "optimizer.momentum=0"}},
                    Served{"hybrid", {"--strategy", "hybrid", "--set", "strategy.groups=2"}},
                    Served{"pgas", {"--strategy", "pgas"}}),
    testing::PrintToStringParamName());

// Longer than the server's patience with a client (4 s): its leases go to others, what it adds for
// them later is refused by the box, and it comes back. TRIREME_SERVER_KILLS asks for more cuts.
TEST_F(RanksHostsTest, ALinkThatIsCutForFiveSecondsCostsNothingTwice) {
  Write("hosts", "10.78.0.1 2  # rank 0 leases, 1 trains\n10.78.0.2 2\n");
  const Words words = {"train",
                       "--data",
                       "synthetic:8x8x1:5:1200",
                       "--model",
                       "mlp:64-5",
                       "--batch",
                       "24",
                       "--lr",
                       "0.02",
                       "--strategy",
                       "easgd",
                       "--set",
                       "strategy.centre=memory",
                       "--set",
                       "emulate.step_ms=5",
                       "--threads",
                       "1",
                       "--epochs",
                       "1000000",
                       "--set",
                       "trainer.evaluate_every=0",
                       "--set",
                       "trainer.checkpoint_epochs=0",
                       "--set",
                       "strategy.snapshot_s=0.1"};
  auto near = StartOn(0, words + Words{"--out", "a"});
  auto far = StartOn(1, words);
  std::vector<ClientCounts> before(3);
  const auto all_go_on = [&](const std::vector<ClientCounts>& clients) {
    if (clients.size() != 3) return false;
    for (size_t c = 0; c < 3; ++c) {
      if (clients[c].samples < before[c].samples + 100) return false;
    }
    return true;
  };
  ASSERT_TRUE(AwaitClients(*near, "a", all_go_on)) << near->err() << far->err();
  for (int k = 0; k < Wanted("TRIREME_SERVER_KILLS", 5); ++k) {
    Cable("down");
    SleepFor(5);
    Cable("up");
    before = SavedClients("a");
    ASSERT_TRUE(AwaitClients(*near, "a", all_go_on)) << near->err() << far->err();
  }
  near->Kill(SIGTERM);
  EXPECT_EQ(near->Wait(kTimeout).exit_code, 143) << near->err();
  far->Wait(kTimeout);
  const int64_t epochs = SavedStep("a") / 50 + 2;
  Succeed({"train", "--resume", "a", "--quiet", "--epochs", std::to_string(epochs), "--transport",
           "threads", "--set", "transport.hosts=", "--ranks", "4", "--set", "emulate.step_ms=0"});
  EXPECT_EQ(Number("a", "samples"), double(epochs * 1200));
  EXPECT_EQ(Leftovers(Now() + 40), "");
}

}  // namespace
}  // namespace trireme::whole
