// kill -9 of random clients and servers while a run of each strategy with a server goes on:
// it ends by itself, learns, and every position of every epoch counts exactly once. TRIREME_KILLS,
// TRIREME_SERVER_KILLS and TRIREME_SEED in the environment ask for more (scripts/soak-async).
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <random>

#include "support/ranks_test.h"

namespace trireme::whole {
namespace {

struct Case {
  std::string name, transport;
  Words words;
  int servers = 1;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

constexpr int kClients = 4;

// At any moment of a run, but soon.
std::function<double()> AnyPause_s(std::mt19937& random) {
  return [&random] { return std::uniform_real_distribution<double>(0.03, 0.2)(random); };
}

class CentreKillTest : public RanksTest, public testing::WithParamInterface<Case> {};

TEST_P(CentreKillTest, OfClientsAndServerCostsOnlyTheirLastSteps) {
  const int clients = Wanted("TRIREME_KILLS", 5), servers = Wanted("TRIREME_SERVER_KILLS", 5);
  const int seed = Wanted("TRIREME_SEED", 10);
  SCOPED_TRACE(SeedText(seed));
  std::mt19937 random{unsigned(seed)};
  std::vector<std::string> victims;
  const int first = GetParam().servers;
  for (int i = 0; i < clients; ++i) {
    victims.push_back(fmt::format("trireme-r{}", first + int(random() % kClients)));
  }
  for (int i = 0; i < servers; ++i) {
    const int server = i % first;
    victims.push_back(server ? fmt::format("trireme-server{}", server) : "trireme-server");
  }
  std::shuffle(victims.begin(), victims.end(), random);
  // Longer than the kills take, on a fast machine too: every step is stretched.
  const int64_t epochs = 150 + 25 * (clients + servers);

  auto running = Start(Words{"train",
                             "--transport",
                             GetParam().transport,
                             "--ranks",
                             std::to_string(kClients + first),
                             "--epochs",
                             std::to_string(epochs),
                             "--set",
                             "strategy.servers=" + std::to_string(first),
                             "--set",
                             "strategy.snapshot_s=0.1",
                             "--set",
                             "trainer.evaluate_every=100",
                             "--set",
                             "trainer.checkpoint_epochs=0",
                             "--set",
                             "emulate.step_ms=0.3",
                             "--threads",
                             "1",
                             "--quiet",
                             "--out",
                             "a"} +
                       GetParam().words);
  const int killed = KillRanks(*running, victims, AnyPause_s(random));
  const Outcome outcome = running->Wait(kTimeout + 2 * double(victims.size()));
  EXPECT_TRUE(outcome.in_time);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GE(2 * killed, int(victims.size())) << "the run was over too soon";
  ExpectIrisCountedOnce("a", epochs);
  EXPECT_GT(Number("a", "test_accuracy"), 0.85);
  EXPECT_TRUE(Exists(At("a/checkpoints/latest")));
  EXPECT_EQ(Orphans(Now() + 40), "");
  std::printf("%s: %d kills, %lld epochs in %.1f s, accuracy %.3f\n", GetParam().name.c_str(),
              killed, static_cast<long long>(epochs), Number("a", "seconds"),
              Number("a", "test_accuracy"));
}

// Every strategy with a server, over both transports of processes; on several servers those that
// broadcast, that are asked, and that are sent gradients.
std::vector<Case> Cases() {
  const Words plain = {"--lr", "0.02", "--set", "optimizer.momentum=0"};
  const Words memory = {"--set", "strategy.centre=memory"};
  const auto merge = [](const char* name) {
    return Words{"--set", std::string("strategy.merge=") + name};
  };
  struct Strategy {
    std::string name, variant;
    Words words;
    int servers = 1;
  };
  const Strategy strategies[] = {{"async-ps", "", {}},
                                 {"async-ps", "_average", merge("average")},
                                 {"async-ps", "_gradient", merge("gradient") + plain},
                                 {"async-ps", "_2_servers", {}, 2},
                                 {"downpour", "", plain},
                                 {"downpour", "_2_servers", plain, 2},
                                 {"easgd", "", {}},
                                 {"easgd", "_2_servers", {}, 2},
                                 {"easgd", "_memory", memory},
                                 {"ssp", "", {}},
                                 {"hogwild", "_memory", memory + plain},
                                 {"dogwild", "", plain},
                                 {"dogwild", "_memory", memory + plain},
                                 {"mpi-ps", "", {}},
                                 {"hybrid", "", {}},
                                 {"pgas", "", {}},
                                 {"federated", "", {}}};
  std::vector<Case> cases;
  for (const Strategy& strategy : strategies) {
    for (const char* transport : {"tcp", "shm"}) {
      std::string name = strategy.name + strategy.variant + "_" + transport;
      std::replace(name.begin(), name.end(), '-', '_');
      cases.push_back(
          {name, transport, Words{"--strategy", strategy.name} + strategy.words, strategy.servers});
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, CentreKillTest, testing::ValuesIn(Cases()),
                         testing::PrintToStringParamName());

// Weights, the optimizer's memory, steps, versions and leases return together: with clocks and no
// staleness a run is a function of its recipe, so one whose server dies now and then must end at
// the bits of one that nobody disturbed, of allreduce's even.
class CentreBitsTest : public RanksTest, public testing::WithParamInterface<std::string> {};

TEST_P(CentreBitsTest, AreThoseOfAnUndisturbedRun) {
  const Words words = {"train",
                       "--epochs",
                       "40",
                       "--deterministic",
                       "--set",
                       "trainer.shards=4",
                       "--threads",
                       "1",
                       "--quiet",
                       "--set",
                       "trainer.evaluate_every=0",
                       "--set",
                       "optimizer.name=" + GetParam(),
                       "--lr",
                       "0.01"};
  auto running =
      Start(words + Words{"--strategy", "ssp", "--set", "strategy.staleness=0", "--transport",
                          "shm", "--ranks", "4", "--set", "strategy.snapshot_s=0.05", "--set",
                          "emulate.step_ms=1", "--out", "a"});
  const int seed = Wanted("TRIREME_SEED", 10);
  SCOPED_TRACE(SeedText(seed));
  std::mt19937 random{unsigned(seed)};
  std::vector<std::string> victims(size_t(Wanted("TRIREME_SERVER_KILLS", 5)), "trireme-server");
  victims.insert(victims.begin(), "trireme-r1");
  const int killed = KillRanks(*running, victims, AnyPause_s(random));
  const Outcome outcome = running->Wait(kTimeout + 2 * double(victims.size()));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GE(killed, 3) << "the run was over too soon";
  ExpectIrisCountedOnce("a", 40);
  Succeed(words + Words{"--strategy", "allreduce", "--out", "b"});
  EXPECT_EQ(Hash("a"), Hash("b"));
}
INSTANTIATE_TEST_SUITE_P(All, CentreBitsTest, testing::Values("sgd", "adam"));

}  // namespace
}  // namespace trireme::whole
