// Ranks on two machines without MPI: network namespaces with addresses of their own, a hosts file
// and a secret; and a cable that is cut for a while: between ranks that advance in step, and
// between a server and its clients.
#include <fmt/format.h>

#include <csignal>

#include "support/hosts_test.h"

namespace trireme::whole {
namespace {

TEST_F(RanksHostsTest, TrainTogetherByAHostsFile) {
  const Words words = kSmallJob + Words{"--steps", "100"};
  auto first = StartOn(0, words + Words{"--out", "hosts-run"});
  auto second = StartOn(1, words);  // writes nothing, so it needs no --out
  EXPECT_EQ(second->Wait(kTimeout).exit_code, 0) << second->err();
  EXPECT_EQ(first->Wait(kTimeout).exit_code, 0) << first->err();
  Succeed(words + Words{"--out", "alone"});
  EXPECT_EQ(Hash("hosts-run"), Hash("alone"));
  EXPECT_EQ(Number("hosts-run", "ranks"), 3);
  EXPECT_FALSE(Exists(At("runs")));
}

TEST_F(RanksHostsTest, ACutOfThreeSecondsIsNamedAndDoesNotEndTheRun) {
  const Words words = kSmallJob + Words{"--steps", "100000000"};
  auto first = StartOn(0, words + Words{"--out", "cut"});
  auto second = StartOn(1, words);
  ASSERT_TRUE(AwaitStep(*first, "cut", 20)) << first->err() << second->err();
  Cable("down");
  EXPECT_TRUE(AwaitWords(*first, "has heard nothing from rank 2 for")) << first->err();
  int64_t during = -1;  // when what was being written has got to the disk
  for (int i = 0; i < 60 && SavedStep("cut") != during; ++i) {
    during = SavedStep("cut");
    SleepFor(1);
  }
  EXPECT_EQ(SavedStep("cut"), during);  // nobody trains on alone
  EXPECT_FALSE(first->Over()) << first->err();
  EXPECT_FALSE(second->Over()) << second->err();
  Cable("up");
  ASSERT_TRUE(AwaitStep(*first, "cut", during + 100)) << first->err() << second->err();
  EXPECT_TRUE(AwaitWords(*first, "hears from rank 2 again")) << first->err();
  // A signal on the other host stops all.
  second->Kill(SIGTERM);
  EXPECT_EQ(second->Wait(kTimeout).exit_code, 143) << second->err();
  EXPECT_EQ(first->Wait(kTimeout).exit_code, 143) << first->err();
  const std::string steps = std::to_string(SavedStep("cut") + 20);
  Succeed({"train", "--resume", "cut", "--quiet", "--steps", steps, "--transport", "threads",
           "--set", "transport.hosts=", "--ranks", "2"});
  Succeed(kSmallJob + Words{"--steps", steps, "--out", "alone"});
  EXPECT_EQ(Hash("cut"), Hash("alone"));
}

// Files of a hosts file on this machine alone.
class HostsFileTest : public RanksTest {
 protected:
  Words With(const std::string& hosts) {
    Write("hosts", hosts);
    Write("secret", "three banks of oars\n");
    return {"train",
            "--steps",
            "5",
            "--set",
            "transport.hosts=hosts",
            "--set",
            "transport.secret_file=secret"};
  }
  const int port_ = FreePort();
};

TEST_F(HostsFileTest, ThisMachineByNumberAndPortOrByName) {
  Succeed(With(fmt::format("127.0.0.1:{} 2\n", port_)) + Words{"--out", "a"});
  EXPECT_EQ(Number("a", "ranks"), 2);
  Succeed(With(fmt::format("[::1]:{} 2\n", port_)) + Words{"--out", "b"});
  Succeed(With("localhost 2\n") + Words{"--out", "c"});
  EXPECT_EQ(Number("c", "ranks"), 2);
  Refuse(With("127.0.0.1 1\nlocalhost 1\n") + Words{"--out", "d"}, 1,
         {"hosts:2: localhost is this machine, and so is 127.0.0.1 in line 1"});
}

TEST_F(HostsFileTest, WhoWaitsForOthersSaysSoAndObeysSignals) {
  const std::string stopped = "stopped by a signal before all ranks had met";
  auto first = Start(With(fmt::format("127.0.0.1:{} 2\n127.0.0.9 1\n", port_)));
  const std::string gathers =
      fmt::format("waiting at 127.0.0.1:{} for rank 2 (127.0.0.9), at most 60 s", port_);
  EXPECT_TRUE(AwaitWords(*first, gathers)) << first->err();
  first->Kill(SIGTERM);
  EXPECT_EQ(first->Wait(kTimeout).exit_code, 143) << first->err();
  EXPECT_NE(first->err().find(stopped), std::string::npos) << first->err();

  auto second = Start(With(fmt::format("127.0.0.9:{} 1\nlocalhost 2\n", port_)));
  const std::string dials = fmt::format("waiting for rank 0 at 127.0.0.9:{}, at most 60 s", port_);
  EXPECT_TRUE(AwaitWords(*second, dials)) << second->err();
  second->Kill(SIGINT);
  EXPECT_EQ(second->Wait(kTimeout).exit_code, 130) << second->err();
  EXPECT_NE(second->err().find(stopped), std::string::npos) << second->err();

  const Words clients =
      With(fmt::format("127.0.0.9:{} 1\nlocalhost 2\n", port_)) + Words{"--strategy", "easgd"};
  auto third = Start(clients);
  const std::string server = fmt::format("waiting for the server at 127.0.0.9:{}, ", port_);
  EXPECT_TRUE(AwaitWords(*third, server)) << third->err();
  third->Kill(SIGTERM);
  EXPECT_EQ(third->Wait(kTimeout).exit_code, 143) << third->err();
  EXPECT_EQ(Leftovers(Now() + 40), "");
}

// A server and a client on one host, two clients on the other.
class CutClientsTest : public RanksHostsTest, public testing::WithParamInterface<Served> {
 protected:
  void SetUp() override {
    RanksHostsTest::SetUp();
    Write("hosts", "10.78.0.1 2  # the server and client 1\n10.78.0.2 2\n");
  }
  // Clients 2 and 3, who are far.
  static bool BothFar(const std::vector<ClientCounts>& clients,
                      const std::function<bool(const ClientCounts&, size_t)>& holds) {
    return clients.size() == 3 && holds(clients[1], 1) && holds(clients[2], 2);
  }
  // Every position of every epoch has counted once, whoever's work it was.
  void ExpectCountedOnce(const std::string& run, int64_t samples) {
    const Json summary = Summary(run);
    EXPECT_EQ(summary.At("samples").AsInt(), summary.At("epochs").AsInt() * samples);
    int64_t sum = 0, updates = 0;
    for (const Json& client : summary.At("clients").Items()) {
      sum += client.At("samples").AsInt();
      updates += client.At("updates").AsInt();
    }
    EXPECT_EQ(sum, summary.At("samples").AsInt());
    EXPECT_EQ(updates, summary.At("updates").AsInt());
  }
};

// Shorter than the server's patience with a client (4 s): its work is kept. Longer: it is removed,
// its leases go to others and what it brings for them later is refused.
TEST_P(CutClientsTest, KeepOrLoseTheirWorkAndNeverBoth) {
  const Words words = Words{"train",
                            "--data",
                            "synthetic:8x8x1:5:1200",
                            "--model",
                            "mlp:64-5",
                            "--batch",
                            "24",
                            "--lr",
                            "0.02",
                            "--set",
                            "optimizer.momentum=0",
                            "--set",
                            "emulate.step_ms=5",
                            "--threads",
                            "1",
                            "--set",
                            "trainer.checkpoint_epochs=0",
                            "--set",
                            "strategy.snapshot_s=0.1"} +
                      GetParam().words;
  const Words endless = {"--epochs", "1000000", "--set", "trainer.evaluate_every=0"};
  auto near = StartOn(0, words + endless + Words{"--out", "a"});
  auto far = StartOn(1, words + endless);
  const auto works = [](const ClientCounts& c, size_t) { return c.samples > 0; };
  ASSERT_TRUE(AwaitClients(*near, "a", [&](const auto& all) { return BothFar(all, works); }))
      << near->err() << far->err();

  Cable("down");
  SleepFor(
      0.5);  // what is lost is sent again after twice as long, and a busy machine takes its time
  Cable("up");
  const auto before = SavedClients("a");
  const auto goes_on = [&](const ClientCounts& c, size_t i) {
    return c.samples >= before[i].samples + 200;
  };
  ASSERT_TRUE(AwaitClients(*near, "a", [&](const auto& all) { return BothFar(all, goes_on); }))
      << near->err() << far->err();
  const auto kept = [](const ClientCounts& c, size_t) { return !c.removed && !c.refused; };
  EXPECT_TRUE(BothFar(SavedClients("a"), kept)) << near->err();

  Cable("down");
  // The near one goes on with what was theirs. They are named, and come back.
  const auto removed = [](const ClientCounts& c, size_t) { return c.removed > 0; };
  ASSERT_TRUE(AwaitClients(*near, "a", [&](const auto& all) { return BothFar(all, removed); }))
      << near->err() << far->err();
  Cable("up");
  EXPECT_NE(near->err().find("client 2 has been silent for"), std::string::npos) << near->err();
  const auto cut = SavedClients("a");
  const auto returned = [&](const ClientCounts& c, size_t i) {
    return c.samples >= cut[i].samples + 200;
  };
  ASSERT_TRUE(AwaitClients(*near, "a", [&](const auto& all) { return BothFar(all, returned); }))
      << near->err() << far->err();
  const auto after = SavedClients("a");
  EXPECT_GT(after[0].samples, before[0].samples);
  EXPECT_GE(after[1].refused + after[2].refused, 1) << "nobody's work came too late";

  near->Kill(SIGTERM);
  EXPECT_EQ(near->Wait(kTimeout).exit_code, 143) << near->err();
  far->Wait(kTimeout);
  const std::string epochs = std::to_string(SavedStep("a") / 50 + 2);
  Succeed({"train", "--resume", "a", "--quiet", "--epochs", epochs, "--transport", "threads",
           "--set", "transport.hosts=", "--ranks", "4", "--set", "emulate.step_ms=0"});
  ExpectCountedOnce("a", 1200);
}
INSTANTIATE_TEST_SUITE_P(Strategies, CutClientsTest,
                         testing::Values(Served{"easgd", {"--strategy", "easgd"}},
                                         Served{"downpour", {"--strategy", "downpour"}},
                                         Served{"easgd_memory",
                                                {"--strategy", "easgd", "--set",
                                                 "strategy.centre=memory"}},
                                         Served{"pgas", {"--strategy", "pgas"}}),
                         testing::PrintToStringParamName());

// A server on each host. When one of them dies, both go back to the last snapshot.
class ServersOnHostsTest : public RanksHostsTest,
                           public testing::WithParamInterface<std::string> {};
TEST_P(ServersOnHostsTest, DieAndComeBack) {
  constexpr int64_t kEpochs = 300;
  Write("hosts", "10.78.0.1 1  # server 0\n10.78.0.2 3  # server 1, ranks 2 and 3\n");
  const Words words = {"train",
                       "iris",
                       "--strategy",
                       GetParam(),
                       "--epochs",
                       std::to_string(kEpochs),
                       "--lr",
                       "0.02",
                       "--threads",
                       "1",
                       "--quiet",
                       "--set",
                       "optimizer.momentum=0",
                       "--set",
                       "strategy.servers=2",
                       "--set",
                       "strategy.snapshot_s=0.1",
                       "--set",
                       "trainer.evaluate_every=100",
                       "--set",
                       "trainer.checkpoint_epochs=0",
                       "--set",
                       "emulate.step_ms=0.3"};
  auto first = StartOn(0, words + Words{"--out", "a"});
  auto second = StartOn(1, words);
  const auto pause = [] { return 0.3; };
  int killed = KillRanks(*second, {"trireme-server1"}, pause);
  killed += KillRanks(*first, {"trireme-server"}, pause);
  killed += KillRanks(*second, {"trireme-r3", "trireme-server1"}, pause);
  const Outcome there = second->Wait(kTimeout), here = first->Wait(kTimeout);
  EXPECT_EQ(here.exit_code, 0) << here.err;
  EXPECT_EQ(there.exit_code, 0) << there.err;
  EXPECT_GE(killed, 3) << "the run was over too soon";
  ExpectIrisCountedOnce("a", kEpochs);
  EXPECT_GT(Number("a", "test_accuracy"), 0.85);
  EXPECT_EQ(Leftovers(Now() + 40), "");
}
INSTANTIATE_TEST_SUITE_P(Strategies, ServersOnHostsTest,
                         testing::Values("downpour", "easgd", "async-ps"));

TEST_F(RanksHostsTest, ASignalToTheFirstServerEndsThoseOnOtherHosts) {
  Write("hosts", "10.78.0.1 1  # server 0\n10.78.0.2 3  # server 1, ranks 2 and 3\n");
  const Words words = {"train",      "iris",
                       "--strategy", "easgd",
                       "--set",      "strategy.servers=2",
                       "--epochs",   "1000000",
                       "--set",      "trainer.evaluate_every=0",
                       "--set",      "strategy.snapshot_s=0.1"};
  auto first = StartOn(0, words + Words{"--out", "a"});
  auto second = StartOn(1, words);
  const auto work = [](const std::vector<ClientCounts>& clients) {
    return clients.size() == 2 && clients[0].samples > 0 && clients[1].samples > 0;
  };
  ASSERT_TRUE(AwaitClients(*first, "a", work)) << first->err() << second->err();
  first->Kill(SIGTERM);
  EXPECT_EQ(first->Wait(kTimeout).exit_code, 143) << first->err();
  EXPECT_EQ(second->Wait(kTimeout).exit_code, 0) << second->err();
  EXPECT_EQ(Leftovers(Now() + 40), "");
}

TEST_F(RanksHostsTest, AnotherSecretIsRefused) {
  Write("wrong", "a fourth bank\n");
  Outcome stranger, host;
  for (const std::string join_s : {"4", "60"}) {  // a busy machine may not start both in 4 s
    const Words words = kSmallJob + Words{"--steps", "100", "--set", "transport.join_s=" + join_s};
    auto first = StartOn(0, words + Words{"--out", "a" + join_s});
    auto second = StartOn(1, words, "wrong");
    stranger = second->Wait(kTimeout);
    host = first->Wait(kTimeout);
    if (stranger.err.find("cannot reach") == stranger.err.npos) break;
  }
  EXPECT_EQ(stranger.exit_code, 1);
  EXPECT_NE(stranger.err.find("the run's secret is different; use the same transport.secret_file"),
            stranger.err.npos)
      << stranger.err;
  EXPECT_EQ(host.exit_code, 1);
  EXPECT_NE(host.err.find("rank 2"), host.err.npos) << host.err;
  EXPECT_EQ(Leftovers(Now() + 40), "");
}

TEST_F(RanksHostsTest, AKilledRankEndsTheJobOnBothHosts) {
  const Words words = kSmallJob + Words{"--steps", "100000000"};
  auto first = StartOn(0, words + Words{"--out", "a"});
  auto second = StartOn(1, words);
  ASSERT_TRUE(AwaitStep(*first, "a", 20)) << first->err() << second->err();
  const std::vector<pid_t> there = AwaitRanks(*second, 1);
  ASSERT_EQ(there.size(), 1u);
  kill(there[0], SIGKILL);
  const Outcome near = second->Wait(kTimeout), far = first->Wait(kTimeout);
  EXPECT_EQ(Leftovers(Now() + 40), "");
  EXPECT_EQ(near.exit_code, 1);
  EXPECT_NE(near.err.find("killed by signal 9 (Killed) (rank 2 of 3)"), near.err.npos) << near.err;
  EXPECT_EQ(far.exit_code, 1);
  EXPECT_NE(far.err.find("rank 2 is lost"), far.err.npos) << far.err;
}

}  // namespace
}  // namespace trireme::whole
