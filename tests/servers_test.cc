// A centre on several servers (strategy.servers), and groups that share weights (dogwild): equal
// bits, kills of servers and of workers.
#include <fmt/format.h>

#include <csignal>

#include "base/text.h"
#include "record/json.h"
#include "support/ranks_test.h"

namespace trireme::whole {
namespace {

Words Set(const std::string& key, const std::string& value) { return {"--set", key + "=" + value}; }
const Words kNotTooFast = Set("emulate.step_ms", "0.3");  // to be killed in time
double Pause_s() { return 0.15; }                         // before each kill

class ServersTest : public RanksTest {
 protected:
  static Words Downpour(int servers, int workers, const std::string& transport, int64_t epochs) {
    return Words{"train",
                 "--strategy",
                 "downpour",
                 "--transport",
                 transport,
                 "--ranks",
                 std::to_string(servers + workers),
                 "--epochs",
                 std::to_string(epochs),
                 "--lr",
                 "0.02",
                 "--threads",
                 "1",
                 "--quiet"} +
           Set("strategy.servers", std::to_string(servers)) + Set("optimizer.momentum", "0");
  }
};

TEST_F(ServersTest, OneWorkerHasTheBitsOfOneServerOnEveryTransport) {
  for (const std::string optimizer : {"sgd", "adagrad"}) {
    std::string bits;
    for (const auto& [servers, transport] :
         {std::pair{1, "threads"}, {3, "threads"}, {2, "tcp"}, {3, "shm"}}) {
      const std::string run = fmt::format("{}-{}-{}", optimizer, servers, transport);
      const Outcome outcome = Run(Downpour(servers, 1, transport, 5) +
                                  Words{"--set", "optimizer.name=" + optimizer, "--out", run});
      ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
      const std::string own = Summary(run).At("parameters_sha256").AsString();
      if (bits.empty()) bits = own;
      EXPECT_EQ(own, bits) << run;
      ExpectIrisCountedOnce(run, 5);
    }
  }
}

// The server looks for them with the weights of its centre: ssp without staleness has those of a
// run in step.
TEST_F(ServersTest, DeadUnitsAreNamedAsInStep) {
  const Words run = Words{"train", "--lr", "3", "--epochs", "20"} + Set("trainer.shards", "2");
  const auto hint = [&](const Words& words) {
    const std::string said = Succeed(run + words).err;
    const size_t begin = said.find("hint: ");
    return begin == said.npos ? said : said.substr(begin, said.find('\n', begin) - begin);
  };
  const std::string alone = hint({"--deterministic", "--out", "alone"});
  EXPECT_NE(alone.find("never fire (dead ReLUs)"), alone.npos) << alone;
  EXPECT_EQ(hint(Words{"--ranks", "3", "--strategy", "ssp", "--out", "served"} +
                 Set("strategy.staleness", "0")),
            alone);
}

TEST_F(ServersTest, OneWorkerThatPushesAndFetchesInEveryStepHasTheBitsOfOneRank) {
  Succeed(Words{"train", "--ranks", "1", "--epochs", "5", "--lr", "0.02", "--threads", "1",
                "--quiet", "--out", "alone"} +
          Set("optimizer.momentum", "0"));
  for (const std::string transport : {"threads", "tcp", "shm"}) {
    Succeed(Downpour(1, 1, transport, 5) + Set("strategy.push", "1") + Set("strategy.fetch", "1") +
            Words{"--out", transport});
    EXPECT_EQ(Hash(transport), Hash("alone")) << transport;
  }
}

TEST_F(ServersTest, AKilledServerTakesAllBackToTheLastSnapshotAndNothingIsLost) {
  constexpr int64_t kEpochs = 400;
  auto running = Start(Downpour(3, 3, "tcp", kEpochs) + Set("strategy.snapshot_s", "0.1") +
                       Set("trainer.evaluate_every", "100") +
                       Set("trainer.checkpoint_epochs", "0") + kNotTooFast + Words{"--out", "a"});
  const int killed = KillRanks(*running,
                               {"trireme-server1", "trireme-r3", "trireme-server2",
                                "trireme-server", "trireme-r5", "trireme-server1"},
                               Pause_s);
  const Outcome outcome = running->Wait(kTimeout);
  EXPECT_TRUE(outcome.in_time);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GE(killed, 4) << "the run was over too soon";
  ExpectIrisCountedOnce("a", kEpochs);
  EXPECT_GT(Number("a", "test_accuracy"), 0.85);
  EXPECT_EQ(Orphans(Now() + 40), "");
}

TEST_F(ServersTest, AKilledWorkerOfDogwildTakesItsGroupBackToTheCentre) {
  constexpr int64_t kEpochs = 400;
  for (const std::string transport : {"tcp", "shm"}) {
    auto running = Start(Words{"train", "--strategy", "dogwild", "--transport", transport,
                               "--ranks", "5", "--epochs", std::to_string(kEpochs), "--lr", "0.02",
                               "--threads", "1", "--quiet", "--out", transport} +
                         Set("optimizer.momentum", "0") + Set("strategy.snapshot_s", "0.1") +
                         Set("trainer.evaluate_every", "100") +
                         Set("trainer.checkpoint_epochs", "0") + kNotTooFast);
    const int killed =
        KillRanks(*running, {"trireme-r1", "trireme-r4", "trireme-server", "trireme-r2"}, Pause_s);
    const Outcome outcome = running->Wait(kTimeout);
    EXPECT_TRUE(outcome.in_time);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_GE(killed, 2) << "the run was over too soon";
    ExpectIrisCountedOnce(transport, kEpochs);
    EXPECT_GT(Number(transport, "test_accuracy"), 0.85);
    EXPECT_EQ(Orphans(Now() + 40), "");
  }
}

TEST_F(ServersTest, StoppedItResumesWithAnotherNumberOfServers) {
  auto running = Start(Downpour(2, 2, "shm", 100000) + Set("strategy.snapshot_s", "0.1") +
                       Set("trainer.evaluate_every", "0") + Set("trainer.checkpoint_epochs", "0") +
                       Words{"--out", "a"});
  ASSERT_TRUE(AwaitStep(*running, "a", 1)) << running->err();
  kill(running->pid(), SIGTERM);
  const Outcome stopped = running->Wait(kTimeout);
  ASSERT_EQ(stopped.exit_code, 143) << stopped.err;
  EXPECT_EQ(Orphans(Now() + 40), "");
  const int64_t epochs = SavedStep("a") / 2 + 10;  // more than were done
  const Outcome resumed = Run(Words{"train", "--resume", "a", "--epochs", std::to_string(epochs),
                                    "--ranks", "5", "--quiet"} +
                              Set("strategy.servers", "3"));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  ExpectIrisCountedOnce("a", epochs);
}

// As a signal to its machine would, on which the first server is not.
TEST_F(ServersTest, ASignalToALaterServerEndsTheRun) {
  for (const auto& [signal, code] : {std::pair{SIGTERM, 143}, {SIGINT, 130}}) {
    const std::string run = fmt::format("run{}", signal);
    auto running = Start(Downpour(3, 2, "tcp", 100000) + Set("strategy.snapshot_s", "0.1") +
                         Set("trainer.evaluate_every", "0") +
                         Set("trainer.checkpoint_epochs", "0") + Words{"--out", run});
    ASSERT_TRUE(AwaitStep(*running, run, 10)) << running->err();
    ASSERT_TRUE(KillRank(*running, "trireme-server1", signal)) << running->err();
    const Outcome stopped = running->Wait(kTimeout);
    ASSERT_EQ(stopped.exit_code, code) << stopped.err;
    EXPECT_NE(stopped.err.find("trireme train --resume " + run), std::string::npos) << stopped.err;
    EXPECT_EQ(Orphans(Now() + 40), "");
    const Json end = ParseJson(Split(Read(run + "/starts.jsonl"), '\n').at(1), run).At("end");
    EXPECT_EQ(end.At("signal").AsInt(), signal);
    const int64_t epochs = SavedStep(run) / 2 + 10;  // more than were done
    Succeed({"train", "--resume", run, "--epochs", std::to_string(epochs), "--quiet"});
    ExpectIrisCountedOnce(run, epochs);
  }
}

TEST_F(ServersTest, NobodyJoinsSeveralServersByHand) {
  Words words =
      Downpour(2, 1, "tcp", 100000) + Set("trainer.evaluate_every", "0") + Words{"--out", "a"};
  std::erase(words, "--quiet");
  auto running = Start(words);
  std::string meet;
  const std::string before = "listening at ";
  for (const Stopwatch watch; watch.seconds() < kTimeout && meet.empty() && !running->Over();) {
    const std::string err = running->err();
    const size_t at = err.find(before), end = at == err.npos ? at : err.find('\n', at);
    if (end != err.npos) meet = err.substr(at + before.size(), end - at - before.size());
    SleepFor(0.01);
  }
  ASSERT_FALSE(meet.empty()) << running->err();
  const Outcome joined = Run({"join", meet});
  EXPECT_EQ(joined.exit_code, 1);
  EXPECT_NE(joined.err.find("2 servers (strategy.servers)"), std::string::npos) << joined.err;
  kill(running->pid(), SIGTERM);
  EXPECT_EQ(running->Wait(kTimeout).exit_code, 143);  // it went on
}

TEST_F(ServersTest, WhatCarriesMessagesOverShmIsSaid) {
  const Words words = {"train", "--strategy", "easgd", "--ranks", "3", "--epochs", "1"};
  const std::string said = "3 ranks over shm (between the server and its clients: TCP on loopback)";
  const Words shm = words + Words{"--transport", "shm"};
  EXPECT_NE(Succeed(shm + Words{"--out", "a"}).err.find(said), std::string::npos);
  EXPECT_NE(Succeed(shm + Words{"--dry-run"}).out.find(said), std::string::npos);
  EXPECT_EQ(Succeed(words + Words{"--dry-run", "--transport", "tcp"}).out.find("loopback"),
            std::string::npos);
}

TEST_F(ServersTest, WhatMakesNoSenseIsRefused) {
  const auto refusal = [&](const Words& words) {
    const Outcome outcome = Run(words);
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  EXPECT_NE(refusal(Downpour(2, 2, "threads", 1) + Set("trainer.clip", "1")).find("trainer.clip"),
            std::string::npos);
  EXPECT_NE(refusal(Words{"train", "--ranks", "4", "--strategy", "federated", "--quiet"} +
                    Set("strategy.servers", "2"))
                .find("strategy.servers"),
            std::string::npos);
  EXPECT_NE(refusal(Downpour(3, 0, "threads", 1)).find("transport.ranks"), std::string::npos);
}

}  // namespace
}  // namespace trireme::whole
