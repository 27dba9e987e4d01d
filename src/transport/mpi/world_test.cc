#include "transport/mpi/world.h"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/proc_file.h"
#include "transport/collective/broadcast.h"
#include "transport/mpi/library.h"
#include "transport/mpi/testing.h"

namespace trireme {
namespace {

std::span<std::byte> Bytes(std::vector<int>& v) { return std::as_writable_bytes(std::span(v)); }

// Cases: each runs on every rank of a job.

void TheNativeSumAddsAllRanks(World& world) {
  Group& group = world.group();
  for (size_t n : {0, 1, 1000, 300'007}) {
    std::vector<float> v(n);
    std::iota(v.begin(), v.end(), float(group.rank()));
    EXPECT_TRUE(group.NativeSum(v));
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(v[i], 3 * float(i) + 3);
  }
  // Two thirds of the bytes twice; a piece rounds down.
  EXPECT_NEAR(double(group.volume().sent), 4 * 301'008 * 4 / 3.0, 4 * 301'008 / 4000 + 3);
  std::vector<float> v(3, 1);
  EXPECT_FALSE(group.Split(0)->NativeSum(v));
  EXPECT_EQ(v, std::vector<float>(3, 1));
}

// Until mpirun ends it, because another rank has ended with an error.
[[noreturn]] void WaitForTheEnd() {
  for (;;) pause();
}

void ASumThatSomeoneMissesIsNotWaitedForForever(World& world) {
  std::vector<float> v(10);
  if (world.rank() == 1) WaitForTheEnd();
  world.group().NativeSum(v);
}

void AnEndlessMessageIsRefused(World& world) {  // in pieces of 4,000 bytes
  std::vector<int> v(world.rank() ? 1500 : 5000);
  if (world.rank() == 0) world.group().Send(1, 5, Bytes(v)).Wait();
  if (world.rank() == 1) world.group().Receive(0, 5, Bytes(v)).Wait();
  Barrier(world.group(), 6);
}

// MPI takes a short message out of the sender's hands at once, whether anybody looks or not.
void ShortOffersWaitForAReader(World& world) {
  constexpr int kOffers = 50;
  if (world.rank() == 0) {
    for (int i = 1; i <= kOffers; ++i) world.LinkTo(1).Offer({.kind = i});
    Barrier(world.group(), 0);
    Barrier(world.group(), 0);
    return;
  }
  Barrier(world.group(), 0);  // only now it has an end of the link
  int seen = 0;
  for (Message message; message.kind < kOffers; ++seen) {
    ASSERT_EQ(world.LinkTo(0).Receive(message, After(60)), Arrival::kMessage);
  }
  EXPECT_LE(seen, 2);  // the one that was on its way, and the last
  Barrier(world.group(), 0);
}

// What nobody receives does not keep the job from its end.
void TheLastOffersAreNotRead(World& world) {
  Link& link = world.LinkTo(1 - world.rank());
  for (int i = 0; i < 3; ++i) link.Offer({.body = std::vector<float>(3'000'000, 1.0f)});
  link.Send({.body = std::vector<float>(3'000'000, 1.0f)});
}

// Four ranks on perhaps two cores: those that wait must leave them to the one that works.
void WaitingCostsLittle(World& world) {
  std::vector<int> v(1);
  const Stopwatch watch;
  const std::clock_t start = std::clock();
  if (world.rank() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    for (int r = 1; r < world.size(); ++r) world.group().Send(r, 0, Bytes(v)).Wait();
  } else {
    world.group().Receive(0, 0, Bytes(v)).Wait();
  }
  EXPECT_LT(double(std::clock() - start) / CLOCKS_PER_SEC, watch.seconds() / 3);
}

void TheOthersHearWhy(World& world) {
  std::vector<int> v(1);
  if (world.rank() == 1) {
    world.group().Abort("no more paper");
    WaitForTheEnd();  // its own end would end the others
  }
  world.group().Receive(1, 0, Bytes(v)).Wait();
}

void AnExceptionPassesThrough(World& world) {  // nobody calls Abort
  std::vector<int> v(1);
  if (world.rank() == 1) throw std::runtime_error("no more ink");
  world.group().Receive(1, 0, Bytes(v)).Wait();
}

void EveryoneWaits(World& world) {  // for ever, after leaving the number of its process
  ReplaceFile(fmt::format("{}/{}", std::getenv("TRIREME_TEST_FOLDER"), world.rank()),
              std::to_string(getpid()));
  std::vector<int> v(1);
  world.group().Receive((world.rank() + 1) % world.size(), 0, Bytes(v)).Wait();
}

constexpr ConformanceCase kCases[] = {
    {"TheNativeSumAddsAllRanks", 3, TheNativeSumAddsAllRanks},
    {.name = "ASumThatSomeoneMissesIsNotWaitedForForever",
     .ranks = 3,
     .run = ASumThatSomeoneMissesIsNotWaitedForForever,
     .timeout_s = 1,
     .error = "a sum of all ranks did not finish within 1 s (transport.timeout_s)"},
    {.name = "AnEndlessMessageIsRefused",
     .ranks = 2,
     .run = AnEndlessMessageIsRefused,
     .error = "expects 6000 bytes from rank 0, which sends 8000 or more (tag 5)"},
    {"ShortOffersWaitForAReader", 2, ShortOffersWaitForAReader},
    {"TheLastOffersAreNotRead", 2, TheLastOffersAreNotRead},
    {"WaitingCostsLittle", 4, WaitingCostsLittle},
    {.name = "TheOthersHearWhy",
     .ranks = 3,
     .run = TheOthersHearWhy,
     .error = " of 3: rank 1 is lost: no more paper"},  // 0 or 2, whoever ends first
    {.name = "AnExceptionPassesThrough",
     .ranks = 3,
     .run = AnExceptionPassesThrough,
     .error = "error: no more ink"},
};

constexpr ConformanceCase kEveryoneWaits = {"EveryoneWaits", 3, EveryoneWaits, 240};

class MpiWorld : public testing::TestWithParam<ConformanceCase> {};
TEST_P(MpiWorld, Holds) {
  CheckCase(GetParam(), [](int ranks, double, FunctionRef<void(World&)>) {
    RunCase(Mpirun(), GetParam().name, ranks, 4000);
  });
}
INSTANTIATE_TEST_SUITE_P(Cases, MpiWorld, testing::ValuesIn(kCases), CaseName);

// The process numbers that the ranks leave, when all have.
std::vector<pid_t> ReadProcesses(const TemporaryDirectory& folder, int ranks) {
  std::vector<pid_t> processes;
  for (const Deadline end = After(120); After(0) < end && int(processes.size()) < ranks;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::string file = folder / std::to_string(processes.size());
    if (Exists(file)) processes.push_back(ParseNumber<pid_t>(ReadFile(file)).value_or(0));
  }
  return processes;
}

// One that has ended and that nobody has asked for yet (Z) is not there.
bool IsThere(pid_t process) {
  const auto text = ReadProcFile(fmt::format("/proc/{}/stat", process));
  return text && text->find(") Z ") == text->npos;
}

TEST(MpiJob, AKilledRankEndsAllAndLeavesNothing) {
  for (int victim = 0; victim < kEveryoneWaits.ranks; ++victim) {
    TemporaryDirectory folder;
    Ended ended;
    std::jthread job([&] {
      ended =
          RunCommand(fmt::format("TRIREME_TEST_FOLDER={} {} -n {} {} --case {} 0", folder.path(),
                                 Mpirun(), kEveryoneWaits.ranks, Self(), kEveryoneWaits.name));
    });
    const std::vector<pid_t> processes = ReadProcesses(folder, kEveryoneWaits.ranks);
    ASSERT_EQ(int(processes.size()), kEveryoneWaits.ranks);
    const Deadline end = After(120);
    kill(processes[victim], SIGKILL);
    job.join();
    EXPECT_NE(ended.code, 0);
    EXPECT_NE(ended.output.find(fmt::format("process rank {}", victim)), std::string::npos)
        << ended.output;
    for (const pid_t process : processes) {
      while (IsThere(process) && After(0) < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      EXPECT_FALSE(IsThere(process)) << "process " << process << " is left";
    }
  }
}

// The plugin of one MPI under the launcher of another: every process is a world of its own.
TEST(MpiJob, AWorldOfAnotherSizeThanAnnouncedIsRefused) {
  const Ended ended = RunCommand(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0 "
      "PMI_RANK=1 PMI_SIZE=4 timeout -k 2 240 " +
      Self() + " --case TheLastOffersAreNotRead 0");
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.output.find("MPICH (PMI) started this process as rank 1 of 4"), std::string::npos)
      << ended.output;
  EXPECT_NE(ended.output.find("sees rank 0 of 1"), std::string::npos) << ended.output;
}

std::string ErrorOfLoading(const std::string& path) {
  try {
    MpiLibrary library(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(MpiLibrary, SaysItsName) {
  EXPECT_NE(MpiLibrary(TRIREME_MPI_PLUGIN_FILE).Name().find("MPI"), std::string::npos);
}

TEST(MpiLibrary, WhatIsNoPluginIsRefused) {
  TemporaryDirectory folder;
  EXPECT_NE(ErrorOfLoading(folder / "none.so").find("cannot load the MPI plugin"),
            std::string::npos);
  ReplaceFile(folder / "text.so", "not a library");
  EXPECT_NE(ErrorOfLoading(folder / "text.so").find("text.so"), std::string::npos);
  Dl_info info;
  ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &info), 0);
  const std::string real = std::filesystem::canonical(info.dli_fname);
  EXPECT_NE(ErrorOfLoading(real).find("is not a plugin for MPI"), std::string::npos)
      << ErrorOfLoading(real);
}

// 0: passed, 1: failed, 2: nothing could be mounted.
int LoadWhereNothingMayRun(const std::string& folder) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 2;
  mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  if (mount("tmpfs", folder.c_str(), "tmpfs", MS_NOEXEC, "size=1m") != 0) return 2;
  const std::string plugin = folder + "/trireme-mpi.so";
  std::filesystem::copy_file(TRIREME_MPI_PLUGIN_FILE, plugin);
  const std::string said = ErrorOfLoading(plugin);
  const bool right =
      said.find(plugin) != said.npos && said.find(folder + " is mounted noexec: copy") != said.npos;
  if (!right) std::fprintf(stderr, "%s\n", said.c_str());
  return right ? 0 : 1;
}

TEST(MpiLibrary, WhereNothingMayRunIsSaid) {
  TemporaryDirectory folder;
  const pid_t child = fork();
  if (child == 0) _exit(LoadWhereNothingMayRun(folder.path()));
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "a tmpfs cannot be mounted here";
  EXPECT_EQ(status, 0);
}

// What `trireme doctor` writes and tells is enough to make a plugin; one of another version is
// refused.
TEST(MpiLibrary, ASiteBuildsItsOwn) {
  TemporaryDirectory good, bad;
  std::string command(kMpiPluginCommand);
  command.replace(0, command.find(' '), TRIREME_MPICC);
  const auto build = [&](const TemporaryDirectory& folder, const std::string& header) {
    ReplaceFile(folder / "plugin.h", header);
    ReplaceFile(folder / "plugin.c", GetMpiPluginSource().code);
    const Ended built =
        RunCommand(fmt::format("cd {} && {} -Wall -Werror", folder.path(), command));
    EXPECT_EQ(built.code, 0) << built.output;
    return ErrorOfLoading(folder / "trireme-mpi.so");
  };
  std::string header(GetMpiPluginSource().header);
  EXPECT_EQ(build(good, header), "");
  const std::string define = "#define TRIREME_MPI_TABLE ";
  ASSERT_NE(header.find(define), header.npos);
  header.insert(header.find(define) + define.size(), "9");
  const std::string what = build(bad, header);
  EXPECT_NE(what.find("different version"), what.npos) << what;
  EXPECT_NE(what.find(" doctor --write-mpi-plugin mpi-plugin && mpicc -shared -fPIC -O2 -o /"),
            what.npos)
      << what;
  EXPECT_NE(what.find("/trireme-mpi.so mpi-plugin/plugin.c"), what.npos) << what;
}

TEST(FindMpiPlugin, PrefersTheSitesOwnThenTheLaunchersLibrary) {
  TemporaryDirectory folder;
  for (const char* name : {"trireme-mpi-mpich.so", "trireme-mpi-openmpi.so", "trireme-mpi.so",
                           "trireme-mpi.so.bak", "trireme-mpich.so", "trireme"}) {
    ReplaceFile(folder / name, "");
  }
  const std::string site = folder / "trireme-mpi.so", mpich = folder / "trireme-mpi-mpich.so",
                    open = folder / "trireme-mpi-openmpi.so";
  using List = std::vector<std::string>;
  EXPECT_EQ(MpiPluginsIn(folder.path(), "Open MPI"), (List{site, open, mpich}));
  EXPECT_EQ(MpiPluginsIn(folder.path(), "MPICH (PMI)"), (List{site, mpich, open}));
  EXPECT_EQ(MpiPluginsIn(folder / "none", "Slurm"), List{});
  EXPECT_EQ(FindMpiPlugin("a.so", "b.so", ""), "a.so");
  EXPECT_EQ(FindMpiPlugin("", "b.so", ""), "b.so");
}

std::vector<ConformanceCase> All() {
  std::vector<ConformanceCase> all(std::begin(kCases), std::end(kCases));
  all.push_back(kEveryoneWaits);
  return all;
}

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) { return trireme::RunMpiTest(argc, argv, trireme::All()); }
