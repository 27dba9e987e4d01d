#include "transport/launched.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

namespace trireme {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<Launched> Find(const Variables& variables) {
  return FindLauncher([&](const char* name) -> const char* {
    const auto at = variables.find(name);
    return at != variables.end() ? at->second.c_str() : nullptr;
  });
}

std::string ErrorOf(const Variables& variables) {
  try {
    Find(variables);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const Variables kMpirun = {{"OMPI_COMM_WORLD_RANK", "3"},
                           {"OMPI_COMM_WORLD_SIZE", "8"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                           {"PMIX_RANK", "3"}};
const Variables kStep = {{"SLURM_PROCID", "5"},
                         {"SLURM_NTASKS", "7"},
                         {"SLURM_STEP_ID", "0"},
                         {"SLURM_STEP_NUM_TASKS", "7"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                         {"SLURM_NODEID", "2"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_STEP_NODELIST", "n[1-3],m2"},
                         {"SLURM_JOB_NODELIST", "n[1-9],m2"},
                         {"SLURM_CPUS_PER_TASK", "12"},
                         {"PMIX_RANK", "5"}};

Variables operator+(Variables a, const Variables& b) {
  for (const auto& [name, value] : b) a[name] = value;
  return a;
}

TEST(Launched, NobodyStartedThis) {
  EXPECT_FALSE(Find({}));
  EXPECT_FALSE(Find({{"SLURM_JOB_ID", "4"}, {"SLURM_NTASKS", "4"}, {"TRIREME_MEET", "n1:7000"}}));
}

const Variables kTorchrun = {{"RANK", "3"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "n1"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"}};

TEST(Launched, Torchrun) {
  const auto launched = Find(kTorchrun);
  ASSERT_TRUE(launched);
  EXPECT_EQ(launched->launcher, "torchrun");
  EXPECT_EQ(launched->rank, 3);
  EXPECT_EQ(launched->size, 4);
  EXPECT_EQ(launched->local_rank, 1);
  EXPECT_EQ(launched->local_size, 2);
  EXPECT_EQ(launched->hosts, std::vector<std::string>{"n1"});
  EXPECT_EQ(launched->port, 29501);  // torchrun listens on 29500 itself
  EXPECT_FALSE(launched->mpi);
  EXPECT_EQ(Find(kTorchrun + Variables{{"MASTER_PORT", "65535"}})->port, 65534);
  EXPECT_EQ(Find(kTorchrun + Variables{{"TORCHELASTIC_USE_AGENT_STORE", "False"}})->port, 29500);
}

// As PyTorchJob and TrainJob set them for a pod: no agent, and nothing about neighbours.
TEST(Launched, PodsOfPyTorch) {
  Variables pod = {{"RANK", "1"},
                   {"WORLD_SIZE", "2"},
                   {"MASTER_ADDR", "job-master-0"},
                   {"MASTER_PORT", "23456"},
                   {"PET_NNODES", "2"},
                   {"JOB_COMPLETION_INDEX", "0"}};
  const auto launched = Find(pod);
  ASSERT_TRUE(launched);
  EXPECT_EQ(launched->rank, 1);
  EXPECT_EQ(launched->size, 2);
  EXPECT_FALSE(launched->local_size);
  EXPECT_EQ(launched->port, 23456);
  pod.erase("MASTER_PORT");
  EXPECT_EQ(Find(pod)->port, kPort);
  pod["TORCHELASTIC_RUN_ID"] = "7";  // an old torchrun in the pod
  EXPECT_EQ(Find(pod)->port, kPort);
  pod["MASTER_PORT"] = "23456";
  EXPECT_EQ(Find(pod)->port, 23457);
}

TEST(Launched, PodsOfAnIndexedJob) {
  const Variables pod = {
      {"JOB_COMPLETION_INDEX", "2"}, {"TRIREME_WORLD", "4"}, {"TRIREME_MEET", "a-0.a:7117"}};
  const auto launched = Find(pod);
  ASSERT_TRUE(launched);
  EXPECT_EQ(launched->launcher, "Kubernetes");
  EXPECT_EQ(launched->rank, 2);
  EXPECT_EQ(launched->size, 4);
  EXPECT_EQ(launched->meet, "a-0.a:7117");
  EXPECT_EQ(Find(pod + Variables{{"TRIREME_RANK", "1"}})->rank, 1);
  EXPECT_FALSE(Find({{"JOB_COMPLETION_INDEX", "2"}}));  // pods of many runs, perhaps
  EXPECT_EQ(ErrorOf(pod + Variables{{"JOB_COMPLETION_INDEX", "4"}}),
            "JOB_COMPLETION_INDEX must be below TRIREME_WORLD, got 4 of 4");
}

// Words that a shell may have by chance; and one process is no launch.
TEST(Launched, TorchrunIsKnownByAllOfItsVariables) {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR"}) {
    Variables some = kTorchrun;
    some.erase(name);
    EXPECT_FALSE(Find(some)) << name;
  }
  EXPECT_FALSE(Find(kTorchrun + Variables{{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
  EXPECT_EQ(ErrorOf(kTorchrun + Variables{{"RANK", "4"}}),
            "RANK must be below WORLD_SIZE, got 4 of 4");
  EXPECT_NE(ErrorOf(kTorchrun + Variables{{"MASTER_PORT", "70000"}}).find("MASTER_PORT"),
            std::string::npos);
}

TEST(Launched, TorchrunInsideOfOthersIsTheInnermost) {
  EXPECT_EQ(Find(kStep + kTorchrun)->launcher, "torchrun");
  EXPECT_EQ(Find(kMpirun + kTorchrun)->launcher, "torchrun");
  // Set by a script from what mpirun said.
  EXPECT_EQ(Find(kMpirun + kTorchrun + Variables{{"WORLD_SIZE", "8"}})->launcher, "Open MPI");
}

TEST(Launched, OpenMpi) {
  const auto launched = Find(kMpirun);
  ASSERT_TRUE(launched);
  EXPECT_EQ(launched->launcher, "Open MPI");
  EXPECT_EQ(launched->rank, 3);
  EXPECT_EQ(launched->size, 8);
  EXPECT_EQ(launched->local_rank, 1);
  EXPECT_EQ(launched->local_size, 2);
  EXPECT_FALSE(launched->cpus_per_task);
}

TEST(Launched, Slurm) {
  const auto launched = Find(kStep);
  ASSERT_TRUE(launched);
  EXPECT_EQ(launched->launcher, "Slurm");
  EXPECT_EQ(launched->rank, 5);
  EXPECT_EQ(launched->size, 7);
  EXPECT_EQ(launched->local_rank, 1);
  EXPECT_EQ(launched->local_size, 2);
  EXPECT_EQ(launched->cpus_per_task, 12);
  EXPECT_EQ(launched->hosts, (std::vector<std::string>{"n1", "n2", "n3", "m2"}));
}

// The script of a job, and the shell that salloc opens, run once, whatever SLURM_NTASKS says.
TEST(Launched, TheScriptOfASlurmJobIsNoRank) {
  const Variables script = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}};
  EXPECT_FALSE(Find(script));
  const Variables shell = {{"SLURM_STEP_ID", "4294967290"}, {"SLURM_STEP_NUM_TASKS", "1"}};
  EXPECT_FALSE(Find(script + shell));
  EXPECT_TRUE(Find(script + shell + Variables{{"SLURM_STEP_ID", "1"}}));
}

// mpirun inside a job starts one helper per node with srun; its ranks see the helper's numbers too.
TEST(Launched, TheInnermostLauncherCounts) {
  EXPECT_EQ(Find(kStep + kMpirun)->rank, 3);
  EXPECT_EQ(Find(kStep + kMpirun)->launcher, "Open MPI");
  const Variables hydra = {{"PMI_RANK", "2"}, {"PMI_SIZE", "16"}, {"MPI_LOCALRANKID", "2"}};
  EXPECT_EQ(Find(kStep + hydra)->launcher, "MPICH (PMI)");
  EXPECT_EQ(Find(kStep + hydra)->size, 16);
  EXPECT_EQ(Find(kStep + hydra)->local_rank, 2);
  const Variables pmi2 = {{"PMI_RANK", "5"}, {"PMI_SIZE", "7"}};  // srun --mpi=pmi2
  EXPECT_EQ(Find(kStep + pmi2)->launcher, "Slurm");
  const Variables own = {{"TRIREME_RANK", "1"}, {"TRIREME_WORLD", "4"}, {"TRIREME_MEET", "h:9"}};
  EXPECT_EQ(Find(kStep + kMpirun + own)->launcher, "trireme");
  EXPECT_EQ(Find(own)->meet, "h:9");
  EXPECT_EQ(Find(kStep)->meet, "");
  EXPECT_EQ(Find(kStep + Variables{{"TRIREME_MEET", "n1:20007"}})->meet, "n1:20007");
}

TEST(Launched, OthersSayWhatTheyKnow) {
  const auto pmix = Find({{"PMIX_RANK", "2"}});
  EXPECT_EQ(pmix->launcher, "PMIx");
  EXPECT_EQ(pmix->rank, 2);
  EXPECT_FALSE(pmix->size);
  EXPECT_EQ(Find({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}})->launcher, "MPICH (PMI)");
}

TEST(Launched, LaunchersOfVendorsAreKnown) {
  const std::pair<const char*, Variables> all[] = {
      {"MVAPICH",
       {{"MV2_COMM_WORLD_RANK", "3"},
        {"MV2_COMM_WORLD_SIZE", "4"},
        {"MV2_COMM_WORLD_LOCAL_RANK", "1"},
        {"MV2_COMM_WORLD_LOCAL_SIZE", "2"},
        {"PMI_RANK", "3"},
        {"PMI_SIZE", "4"}}},
      {"Flux",
       {{"FLUX_TASK_RANK", "3"},
        {"FLUX_JOB_SIZE", "4"},
        {"FLUX_TASK_LOCAL_ID", "1"},
        {"PMI_RANK", "3"},
        {"PMI_SIZE", "4"}}},
      {"PALS",
       {{"PALS_RANKID", "3"},
        {"PALS_LOCAL_RANKID", "1"},
        {"PALS_LOCAL_SIZE", "2"},
        {"PMI_RANK", "3"},
        {"PMI_SIZE", "4"}}},
      {"jsrun",
       {{"JSM_NAMESPACE_RANK", "3"},
        {"JSM_NAMESPACE_SIZE", "4"},
        {"JSM_NAMESPACE_LOCAL_RANK", "1"}}},
  };
  for (const auto& [name, variables] : all) {
    const auto launched = Find(variables);
    ASSERT_TRUE(launched) << name;
    EXPECT_EQ(launched->launcher, name);
    EXPECT_EQ(launched->rank, 3) << name;
    EXPECT_EQ(launched->size, 4) << name;
    EXPECT_EQ(launched->local_rank, 1) << name;
    EXPECT_TRUE(launched->mpi) << name;
    // Started by srun on each node, they are the innermost.
    EXPECT_EQ(Find(kStep + variables)->launcher, name);
    EXPECT_EQ(Find(kMpirun + variables)->launcher, "Open MPI") << name;
  }
  EXPECT_FALSE(Find({{"PALS_RANKID", "3"}})->size);
  EXPECT_NE(ErrorOf({{"FLUX_JOB_SIZE", "4"}}).find("FLUX_TASK_RANK is not"), std::string::npos);
}

TEST(Launched, NonsenseIsNamed) {
  const auto expect = [](const Variables& variables, const char* words) {
    EXPECT_NE(ErrorOf(variables).find(words), std::string::npos) << ErrorOf(variables);
  };
  expect(kMpirun + Variables{{"OMPI_COMM_WORLD_RANK", "3x"}}, "OMPI_COMM_WORLD_RANK must be");
  expect(kMpirun + Variables{{"OMPI_COMM_WORLD_RANK", "-1"}}, "at least 0, got \"-1\"");
  expect(kMpirun + Variables{{"OMPI_COMM_WORLD_SIZE", "3"}},
         "OMPI_COMM_WORLD_RANK must be below OMPI_COMM_WORLD_SIZE, got 3 of 3");
  expect(kMpirun + Variables{{"OMPI_COMM_WORLD_LOCAL_RANK", "2"}}, "got 2 of 2");
  expect(kStep + Variables{{"SLURM_STEP_NUM_TASKS", "99999999999"}},
         "SLURM_STEP_NUM_TASKS must be");
  expect(kStep + Variables{{"SLURM_STEP_TASKS_PER_NODE", "2(x)"}}, "tasks per node");
  expect(kStep + Variables{{"SLURM_CPUS_PER_TASK", "0"}}, "SLURM_CPUS_PER_TASK");
  expect({{"TRIREME_RANK", "1"}}, "TRIREME_WORLD is not");
  expect({{"TRIREME_WORLD", "1"}}, "TRIREME_RANK is not");
  expect({{"OMPI_COMM_WORLD_SIZE", "2"}}, "OMPI_COMM_WORLD_RANK is not");
}

TEST(ExpandHosts, KnowsSlurmsShortForm) {
  using List = std::vector<std::string>;
  EXPECT_EQ(ExpandHosts(""), List{});
  EXPECT_EQ(ExpandHosts("login"), List{"login"});
  EXPECT_EQ(ExpandHosts("n[1-3,07-09],m2"), (List{"n1", "n2", "n3", "n07", "n08", "n09", "m2"}));
  EXPECT_EQ(ExpandHosts("n[099-101]-ib"), (List{"n099-ib", "n100-ib", "n101-ib"}));
  EXPECT_EQ(ExpandHosts("r[1-2]n[8,10]"), (List{"r1n8", "r1n10", "r2n8", "r2n10"}));
  EXPECT_EQ(ExpandHosts("a-1,b[5]"), (List{"a-1", "b5"}));
  EXPECT_EQ(ExpandHosts("n[1-65536]").size(), 65536u);
}

TEST(ExpandHosts, RefusesWhatIsNoList) {
  for (const char* bad :
       {"n[1-3", "n[]", "n[3-1]", "n[a]", "n[1-]", "n[-3]", "n[1,]", "a,,b", ",a", "n[+1-2]",
        "n[0-4294967295]", "n[1-65537]", "n[1-999]m[1-999]", "n[99999999999]"}) {
    EXPECT_THROW(ExpandHosts(bad), Error) << bad;
  }
}

TEST(ExpandCounts, KnowsSlurmsShortForm) {
  EXPECT_EQ(ExpandCounts("2(x3),1"), (std::vector<int>{2, 2, 2, 1}));
  EXPECT_EQ(ExpandCounts("4"), std::vector<int>{4});
  for (const char* bad :
       {"x", "2(x", "2(x3", "2(x)", "0", "2(x0)", "2(x4294967295)", "1,,2", "-1"}) {
    EXPECT_THROW(ExpandCounts(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace trireme
