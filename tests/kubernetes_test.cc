// A cluster, played: what `launch kubernetes` writes is started in pods, which are namespaces with
// processes, an address and a file of names of their own. Names come late, pods are killed, stopped
// and born again elsewhere, and the run ends with the bits of an undisturbed one.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>

#include "base/text.h"
#include "support/hosts_test.h"

namespace trireme::whole {
namespace {

// A value as YamlText writes it.
std::string Scalar(std::string_view text) {
  return text.starts_with('"') ? ParseJson(text, "job.yaml").AsString() : std::string(text);
}

// What a kubelet takes from the file.
struct PodSpec {
  Words args;
  std::map<std::string, std::string> variables;
};

PodSpec ReadPod(const std::string& yaml) {
  PodSpec pod;
  std::string name, secret;
  bool args = false;
  for (const std::string& line : Split(yaml, '\n')) {
    const std::string_view text = Trim(line);
    const auto after = [&](std::string_view key) { return Scalar(text.substr(key.size())); };
    if (text.starts_with("secret: ")) secret = after("secret: ");
    if (text.starts_with("- name: ")) name = after("- name: ");
    if (text.starts_with("value: ")) pod.variables[name] = after("value: ");
    if (text == "secretKeyRef:") pod.variables[name] = secret;
    if (args && text.starts_with("- ")) {
      std::string word = after("- ");
      for (size_t at = 0; (at = word.find("$$", at)) != word.npos; ++at) word.erase(at, 1);
      pod.args.push_back(word);
    } else {
      args = text == "args:";
    }
  }
  return pod;
}

class KubernetesTest : public RanksTest {
 protected:
  static constexpr int kRanks = 3;

  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "namespaces need root";
    if (!Works("ip -V")) GTEST_SKIP() << "there is no ip (package iproute2)";
    if (!Works("unshare --mount --pid --fork --mount-proc true") ||
        !Works("ip netns add " + Name(0))) {
      GTEST_SKIP() << "namespaces cannot be made here";
    }
    born_ = 1;
    if (!Works(fmt::format("ip -n {0} link add br0 type bridge && ip -n {0} link set br0 up",
                           Name(0)))) {
      GTEST_SKIP() << "bridges cannot be made here";
    }
    Names();
  }
  void TearDown() override {
    for (auto& pod : pods_) pod.reset();
    for (int i = 0; i < born_; ++i) Works("ip netns del " + Name(i));
  }

  static std::string Name(int number) { return fmt::format("trireme-k{}-{}", getpid(), number); }

  // Writes job.yaml.
  void Apply(const Words& train) {
    Succeed(Words{"launch", "kubernetes", "--ranks", std::to_string(kRanks), "--image", "trireme:1",
                  "--cpus-per-rank", "1", "--memory", "1Gi", "--claim", "training", "--name", "job",
                  "--out", "job.yaml", "--"} +
            train);
    spec_ = ReadPod(Read("job.yaml"));
  }

  // A pod, at an address that none had before. The first process in it is the program.
  void Birth(int rank) {
    const int number = born_++;
    const std::string address = fmt::format("10.79.0.{}", number);
    ASSERT_TRUE(
        Works(fmt::format("ip netns add {0} && ip -n {0} link set lo up && "
                          "ip -n {0} link add eth0 type veth peer name p{1} netns {2} && "
                          "ip -n {0} addr add {3}/24 dev eth0 && ip -n {0} link set eth0 up && "
                          "ip -n {2} link set p{1} master br0 up",
                          Name(number), number, Name(0), address)));
    Words launcher = {"ip",
                      "netns",
                      "exec",
                      Name(number),
                      "unshare",
                      "--mount",
                      "--pid",
                      "--fork",
                      "--kill-child",
                      "--mount-proc",
                      "sh",
                      "-c",
                      "mount --bind names /etc/hosts && mount --bind /dev/null /etc/resolv.conf && "
                      "exec env \"$@\"",
                      "sh",
                      fmt::format("JOB_COMPLETION_INDEX={}", rank)};
    for (const auto& [name, value] : spec_.variables) launcher.push_back(name + "=" + value);
    pods_[rank] = Start(spec_.args, launcher);
    numbers_[rank] = number;
    addresses_[rank] = address;
  }

  // In place: pods see the file itself. Every name has an old address, too, which is tried first:
  // nobody answers there.
  void Names() {
    std::ofstream file(At("names"));
    file << "127.0.0.1 localhost\n";
    for (const auto& [rank, address] : addresses_) {
      file << fmt::format("127.0.0.9 job-{0}.job\n{1} job-{0}.job\n", rank, address);
    }
  }

  void Kill(int rank) {
    pods_[rank]->Kill(SIGKILL);
    pods_[rank]->Wait(kTimeout);
    Bury(rank);
  }
  // As a kubelet does: to the first process of the pod.
  void Stop(const std::vector<int>& ranks) {
    for (const int rank : ranks) {
      Shell(fmt::format("kill -TERM $(cat /proc/{0}/task/{0}/children)", pods_[rank]->pid()));
    }
    for (const int rank : ranks) {
      EXPECT_EQ(pods_[rank]->Wait(kTimeout).exit_code, 143) << pods_[rank]->err();
      Bury(rank);
    }
  }
  void Bury(int rank) {
    EXPECT_TRUE(Works("ip netns del " + Name(numbers_[rank])));
    addresses_.erase(rank);
    Names();
  }
  std::string Errors() const {
    std::string text;
    for (const auto& pod : pods_) text += pod ? pod->err() : "";
    return text;
  }

  PodSpec spec_;
  std::unique_ptr<Running> pods_[kRanks];
  int numbers_[kRanks] = {};
  std::map<int, std::string> addresses_;  // by rank, of those that have names
  int born_ = 0;
};

TEST_F(KubernetesTest, PodsComeAndGoAndTheBitsStay) {
  const Words words = kSmallJob + Words{"--set", "emulate.step_ms=5", "--out", "run"};
  Apply(words + Words{"--steps", "100000000"});
  const auto later = [&] { return SavedStep("run") + 60; };

  for (int rank = 0; rank < kRanks; ++rank) Birth(rank);
  SleepFor(5);  // nobody knows their names yet
  const std::string waits = "job-0.job:7117, a name without an address so far, at most 900 s";
  EXPECT_TRUE(AwaitWords(*pods_[1], waits)) << Errors();
  Names();
  ASSERT_TRUE(AwaitStep(*pods_[0], "run", 40)) << Errors();

  Kill(1);
  Birth(1);
  Names();
  ASSERT_TRUE(AwaitStep(*pods_[0], "run", later())) << Errors();

  Kill(0);  // which has the run, and the place where all meet
  Birth(0);
  SleepFor(1);
  Names();
  ASSERT_TRUE(AwaitStep(*pods_[0], "run", later())) << Errors();

  Stop({2});  // after a checkpoint, and the others wait for the next one
  Birth(2);
  Names();
  ASSERT_TRUE(AwaitStep(*pods_[0], "run", later())) << Errors();

  // The job is deleted, and another one goes on.
  Stop({0, 1, 2});
  const std::string steps = std::to_string(later());
  Apply(words + Words{"--steps", steps});
  for (int rank = 0; rank < kRanks; ++rank) Birth(rank);
  Names();
  for (auto& pod : pods_) EXPECT_EQ(pod->Wait(kTimeout).exit_code, 0) << pod->err();
  Succeed(kSmallJob + Words{"--steps", steps, "--out", "alone"});
  EXPECT_EQ(Hash("run"), Hash("alone"));
}

TEST_F(KubernetesTest, ACommandThatCannotWorkEndsWithTwo) {
  Write("run/other", "");  // is not empty
  Apply(kSmallJob + Words{"--steps", "5", "--out", "run"});
  for (int rank = 0; rank < kRanks; ++rank) Birth(rank);
  Names();
  EXPECT_EQ(pods_[0]->Wait(kTimeout).exit_code, 2) << pods_[0]->err();
}

// ---- without a cluster

using LaunchRankTest = RanksTest;

TEST_F(LaunchRankTest, GivesUpWhereNothingComesOfIt) {
  const Outcome outcome =
      Run({"launch", "rank", "--tries", "2", "--", "train", "--data", "csv:nowhere", "--out", "a"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_NE(outcome.err.find("starting it again from the beginning in 1 s"), outcome.err.npos);
  EXPECT_NE(outcome.err.find("2 starts in a row without a new checkpoint: giving up"),
            outcome.err.npos);
}

TEST_F(LaunchRankTest, GoesOnWithARunThatIsThere) {
  const Words train = kSmallJob + Words{"--out", "a"};
  const Words rank = {"launch", "rank", "--"};
  auto running = Start(rank + train + Words{"--steps", "100000000"});
  ASSERT_TRUE(AwaitStep(*running, "a", 20)) << running->err();
  running->Kill(SIGTERM);
  EXPECT_EQ(running->Wait(kTimeout).exit_code, 143) << running->err();
  const std::string steps = std::to_string(SavedStep("a") + 20);
  Succeed(rank + train + Words{"--steps", steps});
  Succeed(kSmallJob + Words{"--out", "b", "--steps", steps});
  EXPECT_EQ(Hash("a"), Hash("b"));
  EXPECT_EQ(Leftovers(Now() + 40), "");
}

TEST_F(LaunchRankTest, NonsenseIsRefusedBeforeItIsSent) {
  const Words whole = {"--ranks",         "2", "--image",  "trireme:1",
                       "--cpus-per-rank", "1", "--memory", "1Gi"};
  const auto refuse = [&](const Words& flags, const Words& train, const std::string& part) {
    Refuse(Words{"launch", "kubernetes"} + flags + Words{"--"} + train, 2, {part});
  };
  const Words good = {"train", "--out", "a"};
  refuse({}, good, "--ranks is needed");
  refuse(whole + Words{"--memory", "16"}, good, "--memory needs a unit");
  refuse(whole + Words{"--image", "trireme"}, good, "--image needs a tag");
  refuse(whole + Words{"--name", "Iris"}, good, "--name must be");
  refuse(whole + Words{"--claim", ""}, good, "--claim is empty");
  refuse(whole, {}, "after --");
  refuse(whole, {"train"}, "--out DIR");
  refuse(whole, {"train", "--out", "/runs/a"}, "/trireme");
  refuse(whole, good + Words{"--ranks", "2"}, "--ranks");
  refuse(whole, good + Words{"--set", "trainer.bacth=2"}, "did you mean trainer.batch");
  refuse(whole, good + Words{"iriss"}, "iriss");
  // A file may lie on the volume.
  Succeed(Words{"launch", "kubernetes"} + whole + Words{"--out", "job.yaml", "--"} + good +
          Words{"mine.toml"});
  EXPECT_EQ(Shell("stat -c %a job.yaml"), "600\n");  // it holds the secret
}

}  // namespace
}  // namespace trireme::whole
