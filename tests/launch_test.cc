// What launchers announce is believed or refused, and the script of `launch slurm` does the right
// thing whatever happens to its step. Launchers are pretended here; slurm_test.cc has a real one.
#include <cstdlib>
#include <map>

#include "base/cores.h"
#include "base/text.h"
#include "support/ranks_test.h"

namespace trireme::whole {
namespace {

bool Holds(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

using Variables = std::map<std::string, std::string>;

// Variables of this process, which programs inherit, until the end of the scope.
class Environment {
 public:
  explicit Environment(const Variables& variables) {
    for (const auto& [name, value] : variables) {
      names_.push_back(name);
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~Environment() {
    for (const std::string& name : names_) unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::string> names_;
};

class LaunchTest : public WholeTest {
 protected:
  // Nobody is waited for, and nothing is written.
  void RefuseSoon(const Words& words, int code, std::initializer_list<std::string> parts) {
    Refuse(Words{"train", "--steps", "2", "--out", "a"} + words, code, parts);
    EXPECT_FALSE(Exists(At("a")));
  }
};

TEST_F(LaunchTest, NoProcessOfManyTrainsAlone) {
  const Variables launchers[] = {
      {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}},
      {{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}},
      {{"TRIREME_RANK", "1"}, {"TRIREME_WORLD", "4"}, {"TRIREME_MEET", "127.0.0.1:1"}},
      {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "1"}},
      {{"SLURM_PROCID", "1"},
       {"SLURM_STEP_ID", "0"},
       {"SLURM_STEP_NUM_TASKS", "4"},
       {"SLURM_STEP_NODELIST", "localhost"}},
  };
  for (const auto& launcher : launchers) {
    const Environment environment(launcher);
    RefuseSoon({"--transport", "threads"}, 2, {"started 4 processes", "--ranks 4"});
    RefuseSoon({"--transport", "shm"}, 2, {"started 4 processes"});
    RefuseSoon({"--ranks", "3"}, 2, {"transport.ranks = 3", "started 4 processes"});
    RefuseSoon({"--ranks", "1"}, 2, {"transport.ranks = 1"});
  }
  const Environment half(Variables{{"TRIREME_RANK", "1"}});
  RefuseSoon({}, 1, {"TRIREME_WORLD"});
}

TEST_F(LaunchTest, TheLauncherOfAnotherMpiIsRefused) {
  const std::string plugin = "trireme-mpi-openmpi.so";
  const std::string out = Run({"doctor"}).out;
  const size_t at = out.find(plugin);
  if (at == out.npos) GTEST_SKIP() << "the plugin for Open MPI is not built";
  const size_t begin = out.find_last_of(" \n", at) + 1;
  const std::string path = out.substr(begin, at + plugin.size() - begin);
  const Environment mpich(Variables{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}});
  RefuseSoon({"--set", "transport.plugin=" + path}, 1,
             {"MPICH (PMI) started this process as rank 0 of 2", "sees rank 0 of 1"});
}

TEST_F(LaunchTest, EachRankStaysOnItsShareOfTheCores) {
  const auto cpus = OrderByCore(ReadCoreFacts().affinity);
  if (cpus.size() < 2) GTEST_SKIP() << "one core";
  const auto cores = [&](const Words& words) {  // the last word of each row of the table
    std::vector<std::string> found;
    const Outcome outcome = Succeed(Words{"train", "--steps", "2", "--ranks", "2"} + words);
    for (const std::string& line : Split(outcome.err, '\n')) {
      if (Holds(line, " worker ")) found.push_back(line.substr(line.rfind(' ') + 1));
    }
    return found;
  };
  const std::vector<std::string> own = {FormatCpuList(ShareOf(cpus, 0, 2)),
                                        FormatCpuList(ShareOf(cpus, 1, 2))};
  const std::vector<std::string> all(2, FormatCpuList(cpus));
  for (const Transport& transport : Transports(StartsItself)) {
    EXPECT_EQ(cores({"--transport", transport}), own) << transport;
    EXPECT_EQ(cores({"--transport", transport, "--set", "trainer.pin=false"}), all) << transport;
  }
}

TEST_F(LaunchTest, RanksThatAreOfNoUseAreWarnedOf) {
  const std::string core = FormatCpuList({ReadCoreFacts().affinity.front()});
  const Words words = {"train", "--steps", "2", "--ranks", "4", "--batch", "2"};
  const Words pinned = {"taskset", "-c", core};
  const Outcome outcome = Succeed(words, pinned);
  EXPECT_TRUE(Holds(outcome.err, "4 workers on 1 core are slower than 1")) << outcome.err;
  EXPECT_TRUE(Holds(outcome.err, "2 of 4 workers get no samples")) << outcome.err;
  EXPECT_EQ(Succeed(words + Words{"--quiet"}, pinned).err, "");
  // A server only adds.
  const Words server = {"--strategy", "easgd", "--transport", "tcp", "--batch", "8"};
  EXPECT_FALSE(Holds(Succeed(Words{"train", "--steps", "2", "--ranks", "2"} + server, pinned).err,
                     "slower than"));
}

TEST_F(LaunchTest, NonsenseIsRefusedBeforeItWaitsInAQueue) {
  const auto refuse = [&](const Words& flags, const Words& train, const std::string& part) {
    Refuse(Words{"launch", "slurm"} + flags + Words{"--"} + train, 2, {part});
  };
  const Words good = {"train", "--out", "a"};
  refuse({"--nodes", "0"}, good, "--nodes must be between 1");
  refuse({"--nodes", "two"}, good, "--nodes must be a number");
  refuse({"--cpus-per-rank", "0"}, good, "--cpus-per-rank");
  refuse({"--partition", ""}, good, "--partition");
  refuse({"--name", "a\nb"}, good, "--name");
  refuse({"--transport", "shm"}, good, "--transport must be tcp or ");
  refuse({"--mpi", "pmix"}, good, "--transport mpi");
  refuse({"--container-with", "apptainer"}, good, "--container");
  refuse({}, {}, "after --");
  refuse({}, {"eval", "a"}, "after --");
  refuse({}, {"train"}, "--out DIR");
  refuse({}, good + Words{"--ranks", "2"}, "--ranks");
  refuse({}, good + Words{"--resume", "b"}, "--resume");
  refuse({}, good + Words{"--bacth", "2"}, "did you mean --batch");
  refuse({}, good + Words{"--set", "trainer.bacth=2"}, "did you mean trainer.batch");
  refuse({}, good + Words{"no.toml"}, "no.toml");
}

// A srun that starts one process, and a program that does what `act` says.
class SlurmScriptTest : public LaunchTest {
 protected:
  void SetUp() override {
    Write("bin/srun", "#!/bin/bash\nwhile [[ $1 == --* ]]; do shift; done\nexec \"$@\"\n");
    Write(
        "bin/scontrol",
        "#!/bin/bash\n[ $1 = show ] && echo n7\n[ $1 = requeue ] && echo $2 >>requeued\nexit 0\n");
    Write("bin/program",
          "#!/bin/bash\n"
          "printf '%s|' \"$@\" >words\n"
          "echo $TRIREME_MEET >meet; echo $TRIREME_SECRET >>secrets\n"
          "mkdir -p \"it's a/checkpoints\"; echo >\"it's a/config.toml\"\n"
          "save() { ln -sfn step-$RANDOM$RANDOM \"it's a/checkpoints/latest\"; }\n"
          ". ./act\n");
    Shell("chmod +x bin/*");
    Succeed({"launch", "slurm", "--program", At("bin/program"), "--out", "job.sh", "--", "train",
             "iris", "--out", "it's a", "--lr", "0.1", "--set", "trainer.init="});
  }

  // The script's exit code, after `meanwhile` was done while the program waits.
  int Act(const std::string& act, const std::string& meanwhile = ":") {
    Write("act", act);
    Shell("rm -f requeued waits");
    const std::string code = Shell(
        "PATH=$PWD/bin:$PATH; export SLURM_JOB_ID=71234 SLURM_JOB_NODELIST='n[7-8]'\n"
        "bash job.sh >>output 2>&1 & script=$!\n" +
        meanwhile + "\nwait $script; echo $?");
    return ParseNumber<int>(Trim(code)).value_or(-1);
  }
  static constexpr const char* kWaits =
      "trap 'save; exit 143' USR1 TERM; echo $$ >waits.new; mv waits.new waits\n"
      "while :; do sleep 0.01; done";
  static constexpr const char* kUntilItWaits = "until [ -e waits ]; do sleep 0.01; done; ";
  bool Requeued() const { return Exists(At("requeued")); }
};

TEST_F(SlurmScriptTest, LaterStartsGoOn) {
  EXPECT_EQ(Act("save; exit 0"), 0);
  EXPECT_EQ(Read("words"), "train|iris|--transport|tcp|--out|it's a|--lr|0.1|--set|trainer.init=|");
  EXPECT_EQ(Act("exit 0"), 0);
  EXPECT_EQ(Read("words"), "train|--resume|it's a|--transport|tcp|--lr|0.1|--set|trainer.init=|");
  EXPECT_EQ(Read("meet"), "n7:21234\n");
  const auto secrets = Split(Read("secrets"), '\n');
  EXPECT_EQ(secrets[0].size(), 64u);
  EXPECT_NE(secrets[0], secrets[1]);
  EXPECT_FALSE(Requeued());
}

TEST_F(SlurmScriptTest, OutOfTimeItIsQueuedAgain) {
  EXPECT_EQ(Act(kWaits, std::string(kUntilItWaits) + "kill -USR1 $script"), 0) << Read("output");
  EXPECT_EQ(Read("requeued"), "71234\n");
}

TEST_F(SlurmScriptTest, OutOfTimeWithoutAStepItIsNot) {
  const std::string act = "save() { :; }; " + std::string(kWaits);
  EXPECT_EQ(Act(act, std::string(kUntilItWaits) + "kill -USR1 $script"), 143);
  EXPECT_FALSE(Requeued());
  EXPECT_TRUE(Holds(Read("output"), "no step was done"));
}

TEST_F(SlurmScriptTest, StoppedByTheUserItIsNot) {
  EXPECT_EQ(Act(kWaits, std::string(kUntilItWaits) + "kill -TERM $(cat waits)"), 143);
  EXPECT_FALSE(Requeued());
}

TEST_F(SlurmScriptTest, TheScriptOutlivesItsStep) {  // scancel signals both
  const std::string slow =
      "trap 'sleep 0.5; save; touch saved; exit 143' TERM\n"
      "echo $$ >waits.new; mv waits.new waits; while :; do sleep 0.01; done";
  EXPECT_EQ(Act(slow, std::string(kUntilItWaits) + "kill -TERM $script $(cat waits)"), 143);
  EXPECT_TRUE(Exists(At("saved")));
  EXPECT_FALSE(Requeued());
}

TEST_F(SlurmScriptTest, FailuresAreHandedOn) {
  EXPECT_EQ(Act("save; exit 1"), 1);
  EXPECT_EQ(Act("exit 2"), 2);
  EXPECT_FALSE(Requeued());
}

}  // namespace
}  // namespace trireme::whole
