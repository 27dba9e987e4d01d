// Who starts the ranks is found out, and what contradicts it is refused before anything runs.
#include "launch/launcher.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "base/error.h"
#include "base/files.h"

namespace trireme {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<Launched> Launch(const Variables& variables) {
  return FindLauncher([&](const char* name) -> const char* {
    const auto at = variables.find(name);
    return at != variables.end() ? at->second.c_str() : nullptr;
  });
}

const Variables kOwn = {{"TRIREME_RANK", "2"}, {"TRIREME_WORLD", "4"}};
const Variables kMpirun = {{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
const Variables kMpich = {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}};
const Variables kPmix = {{"PMIX_RANK", "2"}};
const Variables kSlurm = {{"SLURM_PROCID", "2"},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_STEP_NUM_TASKS", "4"},
                          {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                          {"SLURM_NODEID", "1"},
                          {"SLURM_LOCALID", "0"},
                          {"SLURM_STEP_NODELIST", "n[3-4]"}};

const Variables kTorchrun = {{"RANK", "2"},         {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "0"},   {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "n3"}, {"MASTER_PORT", "29500"}};

std::string Refusal(const Variables& variables, TransportOptions options, bool ranks_given) {
  try {
    Launcher(options, ranks_given, Launch(variables));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

std::string Choice(const Variables& variables, TransportOptions options = {}) {
  const Launcher launcher(options, false, Launch(variables));
  EXPECT_EQ(launcher.launched(), !variables.empty());
  return options.name;
}

TEST(Launcher, TheTransportFollowsTheLauncher) {
  EXPECT_EQ(Choice({}), "threads");
  EXPECT_EQ(Choice(kMpirun), "mpi");
  EXPECT_EQ(Choice(kMpich), "mpi");
  EXPECT_EQ(Choice(kPmix), "mpi");
  EXPECT_EQ(Choice(kSlurm), "tcp");
  EXPECT_EQ(Choice(kTorchrun), "tcp");
  EXPECT_EQ(Choice(kSlurm, {.name = "mpi"}), "mpi");
  EXPECT_EQ(Choice(kOwn, {.meet = "n1:7117"}), "tcp");
  EXPECT_EQ(Choice(kMpirun, {.meet = "n1:7117"}), "tcp");
}

TEST(Launcher, RankAndWorldAreTheLaunchers) {
  for (const Variables& variables : {kMpirun, kMpich, kSlurm, kTorchrun}) {
    TransportOptions options;
    const Launcher launcher(options, false, Launch(variables));
    EXPECT_EQ(launcher.size(), 4);
    EXPECT_EQ(options.ranks, 4);
    EXPECT_EQ(launcher.first(), 2);
    EXPECT_TRUE(launcher.holds(2) && !launcher.holds(0));
    EXPECT_FALSE(launcher.complete());
  }
}

TEST(Launcher, HostsAndRanksAreABatchSystems) {
  char own[256];
  ASSERT_EQ(gethostname(own, sizeof(own)), 0);
  const std::string file = testing::TempDir() + "pe_hosts";
  ReplaceFile(file, std::string("elsewhere 3 q\n") + own + " 2 q\n");
  for (const char* other : {"PBS_NODEFILE", "LSB_DJOB_HOSTFILE"}) unsetenv(other);
  setenv("PE_HOSTFILE", file.c_str(), 1);
  TransportOptions options{.hosts = "auto"};
  const Launcher launcher(options, false, Launch({}));
  EXPECT_EQ(options.name, "tcp");
  EXPECT_EQ(options.ranks, 5);
  EXPECT_EQ(launcher.first(), 3);
  EXPECT_TRUE(launcher.holds(4) && !launcher.holds(2));
  ReplaceFile(file, "elsewhere 3 q\nfurther 2 q\n");
  EXPECT_NE(Refusal({}, {.hosts = "auto"}, false).find("does not name this machine"),
            std::string::npos);
  unsetenv("PE_HOSTFILE");
  EXPECT_NE(Refusal({}, {.hosts = "auto"}, false).find("PE_HOSTFILE"), std::string::npos);
}

// Otherwise four processes would each train the model alone, or four times as many ranks start.
TEST(Launcher, AWorldOfAnotherSizeIsRefused) {
  for (const Variables& variables : {kOwn, kMpirun, kMpich, kSlurm, kTorchrun}) {
    const std::string name = Launch(variables)->launcher;
    for (const char* transport : {"threads", "shm"}) {
      const std::string why = Refusal(variables, {.name = transport}, false);
      EXPECT_NE(why.find(name + " started 4 processes"), why.npos) << why;
      EXPECT_NE(why.find("--ranks 4"), why.npos) << why;
    }
    for (const int ranks : {1, 3, 5}) {
      const std::string why = Refusal(variables, {.ranks = ranks, .meet = "n1:1"}, true);
      EXPECT_NE(why.find("transport.ranks = "), why.npos) << why;
    }
    EXPECT_EQ(Refusal(variables, {.ranks = 4, .meet = "n1:1"}, true), "accepted");
    // What a recipe says, and not the command line, yields.
    EXPECT_EQ(Refusal(variables, {.ranks = 3, .meet = "n1:1"}, false), "accepted");
  }
}

TEST(Launcher, ALauncherThatKeepsTheNumberToItselfLeavesOnlyMpi) {
  for (const char* transport : {"threads", "shm", "tcp"}) {
    const std::string why = Refusal(kPmix, {.name = transport, .meet = "n1:1"}, false);
    EXPECT_NE(why.find("PMIx does not say how many"), why.npos) << why;
  }
  EXPECT_EQ(Refusal(kPmix, {.name = "mpi"}, false), "accepted");
}

TEST(Launcher, OneProcessIsNoLaunch) {
  const Variables one = {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}};
  TransportOptions options{.ranks = 3};
  const Launcher launcher(options, true, Launch(one));
  EXPECT_FALSE(launcher.launched());
  EXPECT_EQ(options.name, "threads");
  EXPECT_EQ(launcher.size(), 3);
}

TEST(Launcher, AnUnknownTransportIsRefused) {
  const std::string why = Refusal({}, {.name = "pigeons"}, false);
  EXPECT_TRUE(why.starts_with("transport.name = \"pigeons\" is unknown; use ")) << why;
  for (const TransportKind& kind : TransportKinds()) EXPECT_NE(why.find(kind.name), why.npos);
}

TEST(Launcher, WithoutALauncherMpiAndAMeetingAreRefused) {
  EXPECT_NE(Refusal({}, {.name = "mpi"}, false).find("mpirun or srun"), std::string::npos);
  EXPECT_NE(Refusal({}, {.name = "tcp", .meet = "n1:1"}, false).find("TRIREME_RANK"),
            std::string::npos);
}

TEST(Launcher, TcpMustKnowWhereToMeet) {
  const std::string why = Refusal(kMpirun, {.name = "tcp"}, false);
  EXPECT_NE(why.find("transport.meet=HOST:PORT"), why.npos) << why;
  const Variables meet = {{"TRIREME_MEET", "n3:20007"}};
  Variables both = kMpirun;
  both.insert(meet.begin(), meet.end());
  EXPECT_EQ(Refusal(both, {.name = "tcp"}, false), "accepted");
  EXPECT_EQ(Refusal(kSlurm, {.name = "tcp"}, false), "accepted");  // the first host of the step
  EXPECT_EQ(Refusal(kOwn, {}, false),
            "TRIREME_RANK is set, but TRIREME_MEET is not; set it to HOST:PORT of rank 0");
}

TEST(Launcher, OwnRanksAreNeighbours) {
  TransportOptions options{.ranks = 3};
  const Launcher launcher(options, true, {});
  EXPECT_EQ(launcher.neighbours().ranks, (std::vector<int>{0, 1, 2}));
  EXPECT_TRUE(launcher.neighbours().host.empty());  // the same
  EXPECT_FALSE(launcher.neighbours().process_each);
}

}  // namespace
}  // namespace trireme
