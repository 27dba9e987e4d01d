// Ranks on two machines without MPI: network namespaces with addresses of their own, a hosts file
// and a secret; and a cable that is cut for a while.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "support/ranks_test.h"

namespace trireme::whole {
namespace {

bool Works(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

class RanksHostsTest : public RanksTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
    if (!Works("ip -V")) GTEST_SKIP() << "there is no ip (package iproute2)";
    for (int h = 0; h < 2; ++h) names_[h] = fmt::format("trireme-w{}-{}", getpid(), h);
    const std::string make = fmt::format(
        "ip netns add {0} && ip netns add {1} && "
        "ip -n {0} link add v0 type veth peer name v1 netns {1} && "
        "ip -n {0} addr add 10.78.0.1/24 dev v0 && ip -n {1} addr add 10.78.0.2/24 dev v1 && "
        "ip -n {0} link set v0 up && ip -n {1} link set v1 up && "
        "ip -n {0} link set lo up && ip -n {1} link set lo up",
        names_[0], names_[1]);
    if (!Works(make)) GTEST_SKIP() << "network namespaces cannot be made here";
    Write("hosts", "10.78.0.1 2  # rank 0 and 1\n10.78.0.2 1\n");
    Write("secret", "three banks of oars\n");
  }
  void TearDown() override {
    for (const std::string& name : names_) {
      if (!name.empty()) Works("ip netns del " + name);
    }
  }

  // The same command on each host.
  std::unique_ptr<Running> StartOn(int host, const Words& words,
                                   const std::string& secret = "secret") {
    return Start(
        words + Words{"--set", "transport.hosts=hosts", "--set", "transport.secret_file=" + secret},
        {"ip", "netns", "exec", names_[host]});
  }

  void Cable(const char* state) {
    ASSERT_TRUE(Works(fmt::format("ip -n {} link set v0 {}", names_[0], state)));
  }

  std::string names_[2];
};

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
  SleepFor(2);  // what was being written gets to the disk
  const int64_t during = SavedStep("cut");
  SleepFor(1);
  EXPECT_EQ(SavedStep("cut"), during);  // nobody trains on alone
  EXPECT_FALSE(first->Over()) << first->err();
  EXPECT_FALSE(second->Over()) << second->err();
  Cable("up");
  ASSERT_TRUE(AwaitStep(*first, "cut", during + 100)) << first->err() << second->err();
  EXPECT_NE(first->err().find("has heard nothing from rank 2 for"), std::string::npos)
      << first->err();
  const auto heard_again = [&] {
    return first->err().find("hears rank 2 again") != std::string::npos;
  };
  for (int i = 0; i < 100 && !heard_again(); ++i) SleepFor(0.1);
  EXPECT_TRUE(heard_again()) << first->err();
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

TEST_F(RanksHostsTest, AnotherSecretIsRefused) {
  Write("wrong", "a fourth bank\n");
  const Words words = kSmallJob + Words{"--steps", "100", "--set", "transport.join_s=4"};
  auto first = StartOn(0, words + Words{"--out", "a"});
  auto second = StartOn(1, words, "wrong");
  const Outcome stranger = second->Wait(kTimeout), host = first->Wait(kTimeout);
  EXPECT_EQ(stranger.exit_code, 1);
  EXPECT_NE(stranger.err.find("the run's secret is another one (transport.secret_file)"),
            stranger.err.npos)
      << stranger.err;
  EXPECT_EQ(host.exit_code, 1);
  EXPECT_NE(host.err.find("rank 2"), host.err.npos) << host.err;
  EXPECT_EQ(Leftovers(Now() + 10), "");
}

TEST_F(RanksHostsTest, AKilledRankEndsTheJobOnBothHosts) {
  const Words words = kSmallJob + Words{"--steps", "100000000"};
  auto first = StartOn(0, words + Words{"--out", "a"});
  auto second = StartOn(1, words);
  ASSERT_TRUE(AwaitStep(*first, "a", 20)) << first->err() << second->err();
  const std::vector<pid_t> there = AwaitRanks(*second, 1);
  ASSERT_EQ(there.size(), 1u);
  const double killed = Now();
  kill(there[0], SIGKILL);
  const Outcome near = second->Wait(kTimeout), far = first->Wait(kTimeout);
  EXPECT_LT(Now() - killed, 10);
  EXPECT_EQ(Leftovers(killed + 10), "");
  EXPECT_EQ(near.exit_code, 1);
  EXPECT_NE(near.err.find("killed by signal 9 (Killed) (rank 2 of 3)"), near.err.npos) << near.err;
  EXPECT_EQ(far.exit_code, 1);
  EXPECT_NE(far.err.find("rank 2 is lost"), far.err.npos) << far.err;
}

}  // namespace
}  // namespace trireme::whole
