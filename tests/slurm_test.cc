// A real Slurm runs the script that `trireme launch slurm` writes: four ranks on four nodes.
// tests/support/slurm-cluster makes the cluster and starts this program in it.
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/text.h"
#include "support/whole_test.h"

namespace trireme::whole {
namespace {

class SlurmTest : public WholeTest {
 protected:
  void SetUp() override {
    const char* cluster = std::getenv("TRIREME_CLUSTER");
    if (!cluster || std::string(cluster) != "ready") {
      GTEST_SKIP() << "start it by tests/support/slurm-cluster 4 THIS_PROGRAM";
    }
  }

  Words TrainWords(const std::string& run, int64_t steps) const {
    return {"train",
            "--data",
            "synthetic:8x8x1:5:500",
            "--model",
            "mlp:64-32-5",
            "--batch",
            "16",
            "--lr",
            "0.02",
            "--deterministic",
            "--set",
            "optimizer.schedule=constant",
            "--set",
            "trainer.shards=4",
            "--set",
            "trainer.checkpoint_steps=10",
            "--out",
            run,
            "--steps",
            std::to_string(steps),
            "--threads",
            "1"};
  }

  // Writes the script and queues it; the number of the job.
  std::string Submit(const Words& flags, int64_t steps) {
    Succeed(Words{"launch", "slurm", "--nodes", "4", "--ranks-per-node", "1", "--name", "job",
                  "--time", "5", "--out", "job.sh"} +
            flags + Words{"--"} + TrainWords("a run", steps));
    return std::string(Trim(Shell("sbatch --parsable job.sh")));
  }

  static bool Holds(const std::string& text, const char* part) {
    return text.find(part) != text.npos;
  }
  std::string Field(const std::string& job, const std::string& name) {
    for (const std::string& field : Split(Shell("scontrol -o show job " + job), ' ')) {
      if (field.starts_with(name + "=")) return field.substr(name.size() + 1);
    }
    return "";
  }
  std::string Output(const std::string& job) const {
    const std::string name = "job-" + job + ".out";
    return Exists(At(name)) ? Read(name) : "no output";
  }

  template <class F>
  bool Await(const std::string& job, F holds) {
    for (const Stopwatch watch; watch.seconds() < kTimeout;) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ADD_FAILURE() << "job " << job << " is " << Field(job, "JobState") << "\n" << Output(job);
    return false;
  }
  bool AwaitState(const std::string& job, const std::string& state) {
    return Await(job, [&] { return Field(job, "JobState") == state; });
  }
  bool AwaitStepOf(const std::string& job, int64_t step) {
    return Await(job, [&] { return Step() >= step; });
  }

  int64_t Step() const {  // of the newest checkpoint
    if (!Exists(At("a run/checkpoints/latest"))) return 0;
    const std::string name = Latest("a run");
    return ParseNumber<int64_t>(name.substr(name.rfind('-') + 1)).value_or(0);
  }

  // Stopped by a signal, then submitted again: the hash is that of a run without all this.
  void StopsAndGoesOn(const Words& flags, bool requeue) {
    std::string job = Submit(flags, 100'000'000);
    ASSERT_TRUE(AwaitStepOf(job, 20));
    if (requeue) {  // what Slurm does some time before the time limit
      Shell("scancel --signal=USR1 --batch " + job);
      ASSERT_TRUE(Await(job, [&] { return Field(job, "Restarts") == "1"; }));
      EXPECT_TRUE(Holds(Output(job), "queued again")) << Output(job);
      const int64_t stopped = Step();
      ASSERT_TRUE(AwaitStepOf(job, stopped + 20));
    }
    Shell("scancel --signal=TERM " + job);
    ASSERT_TRUE(AwaitState(job, "FAILED"));
    EXPECT_EQ(Field(job, "ExitCode"), "143:0") << Output(job);
    EXPECT_EQ(Field(job, "Restarts"), requeue ? "1" : "0");  // a wish to stop is not to start again
    EXPECT_TRUE(Holds(Output(job), "stopped by a signal")) << Output(job);
    EXPECT_FALSE(IsDone("a run"));
    const int64_t stopped = Step();
    ASSERT_GE(stopped, 20);

    job = Submit(flags, stopped + 30);
    ASSERT_TRUE(AwaitState(job, "COMPLETED"));
    const std::string output = Output(job);
    for (const char* host : {" n1 ", " n2 ", " n3 ", " n4 "}) {
      EXPECT_TRUE(Holds(output, host)) << output;
    }
    Succeed(TrainWords("undisturbed", stopped + 30) + Words{"--ranks", "2"});
    EXPECT_EQ(Hash("a run"), Hash("undisturbed")) << output;
    EXPECT_EQ(Number("a run", "steps"), double(stopped + 30));
  }
};

TEST_F(SlurmTest, OverTcp) { StopsAndGoesOn({"--transport", "tcp"}, /*requeue=*/true); }

TEST_F(SlurmTest, OverOpenMpi) {
  if (Run({"doctor"}).out.find("trireme-mpi-openmpi") == std::string::npos) {
    GTEST_SKIP() << "the plugin for Open MPI is not built";
  }
  // Beside other work, a program that does nothing but MPI_Init crashes now and then in the TCP of
  // Open MPI 4.1 under Slurm (btl/tcp receives before anybody can take it). UCX does not.
  for (const auto& [name, value] : {std::pair{"OMPI_MCA_pml", "ucx"},
                                    {"OMPI_MCA_pml_ucx_tls", "any"},
                                    {"OMPI_MCA_pml_ucx_devices", "any"},
                                    {"OMPI_MCA_btl", "^tcp"},
                                    {"UCX_TLS", "tcp,self"}}) {
    setenv(name, value, 1);
  }
  StopsAndGoesOn({"--transport", "mpi", "--mpi", "pmix"}, /*requeue=*/false);
}

// Any user may read the lists of processes. And a job that is cancelled without a word about
// signals gets one all the same, and some seconds.
TEST_F(SlurmTest, TheSecretIsInTheEnvironmentOnlyAndScancelLeavesACheckpoint) {
  const std::string job = Submit({}, 100'000'000);
  ASSERT_TRUE(AwaitStepOf(job, 10));
  const std::string variable = "TRIREME_SECRET=";
  const std::string given =
      Shell("cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a -m 1 ^" + variable);
  const std::string secret(Trim(given.substr(variable.size())));
  EXPECT_EQ(secret.size(), 64u);
  const std::string lines = Shell("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '");
  EXPECT_NE(lines.find("--transport tcp"), lines.npos) << "the ranks are not seen";
  EXPECT_EQ(lines.find(secret), lines.npos);
  Shell("scancel " + job);
  EXPECT_TRUE(Await(job, [&] { return Holds(Output(job), "stopped by a signal"); }));
  AwaitState(job, "CANCELLED");
  EXPECT_EQ(Field(job, "Restarts"), "0");
}

}  // namespace
}  // namespace trireme::whole
