#include "base/cores.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/cgroup.h"
#include "base/machine.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

// A folder with files of the kernel's names, gone afterwards.
class FakeRoot {
 public:
  FakeRoot() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = fs::temp_directory_path() /
            ("trireme_" + std::string(test->name()) + std::to_string(getpid()));
    fs::create_directories(path_);
  }
  ~FakeRoot() { fs::remove_all(path_); }
  void Put(const fs::path& file, const std::string& text) const {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

TEST(Cores, TheTightestLimitCounts) {
  CoreFacts facts{.affinity = {0, 1, 2, 3, 8, 9, 10, 11}};
  EXPECT_EQ(UsableCores(facts).count, 8);
  EXPECT_EQ(UsableCores(facts).why, "affinity mask of 8 processors");
  facts.cgroup_cpus = 3.5;
  EXPECT_EQ(UsableCores(facts).count, 3);
  EXPECT_EQ(UsableCores(facts).why, "cgroup quota of 3.5 processors");
  facts.slurm_cpus = 2;
  EXPECT_EQ(UsableCores(facts).count, 2);
  EXPECT_EQ(UsableCores(facts).why, "SLURM_CPUS_PER_TASK=2");
  facts.cgroup_cpus = 0.25;
  EXPECT_EQ(UsableCores(facts).count, 1);
  facts = {.affinity = {4}, .cgroup_cpus = 64.0, .slurm_cpus = 64};
  EXPECT_EQ(UsableCores(facts).count, 1);
  EXPECT_EQ(UsableCores(facts).why, "affinity mask of 1 processor");
  EXPECT_EQ(UsableCores(facts).cpus, std::vector<int>{4});
  EXPECT_GE(UsableCores({}).count, 1);
}

TEST(Cores, ThisProcessHasSome) {
  const CoreFacts facts = ReadCoreFacts();
  EXPECT_FALSE(facts.affinity.empty());
  EXPECT_GE(UsableCores(facts).count, 1);
}

TEST(Cores, ThreadsAreDividedUnlessTheyAreForEach) {
  CoreFacts facts{.affinity = {0, 1, 2, 3, 4, 5, 6, 7}};
  EXPECT_EQ(ThreadsOfEach(facts, 1, false), 8);
  EXPECT_EQ(ThreadsOfEach(facts, 3, false), 2);
  EXPECT_EQ(ThreadsOfEach(facts, 16, true), 1);
  facts.slurm_cpus = 4;
  EXPECT_EQ(ThreadsOfEach(facts, 2, false), 2);  // four for one process of two ranks
  EXPECT_EQ(ThreadsOfEach(facts, 2, true), 4);   // four for each of two processes
  EXPECT_EQ(ThreadsOfEach(facts, 4, true), 2);   // promised, but not there
  facts.affinity = {0, 1, 2, 3};                 // srun bound each to its own
  EXPECT_EQ(ThreadsOfEach(facts, 1, true), 4);
  facts.cgroup_cpus = 2;
  EXPECT_EQ(ThreadsOfEach(facts, 2, true), 1);
}

TEST(Cores, SharesAreDisjointAndCompleteAndEven) {
  for (int cpus = 0; cpus <= 20; ++cpus) {
    std::vector<int> all;
    for (int i = 0; i < cpus; ++i) all.push_back(3 * i + 1);
    for (int members = 1; members <= 8; ++members) {
      std::vector<int> together;
      for (int index = 0; index < members; ++index) {
        const auto share = ShareOf(all, index, members);
        together.insert(together.end(), share.begin(), share.end());
        if (cpus < members) {
          EXPECT_TRUE(share.empty());
        } else {
          EXPECT_TRUE(int(share.size()) == cpus / members ||
                      int(share.size()) == cpus / members + 1);
        }
      }
      EXPECT_EQ(together, cpus < members ? std::vector<int>{} : all);
    }
  }
}

// Two sockets of two cores of two threads, numbered as Linux does on most x86 machines.
TEST(Cores, TheThreadsOfACoreAreNeighbours) {
  const FakeRoot root;
  for (int cpu = 0; cpu < 8; ++cpu) {
    const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    root.Put(folder + "physical_package_id", std::to_string(cpu / 2 % 2) + "\n");
    root.Put(folder + "core_id", std::to_string(cpu % 2) + "\n");
  }
  const auto order = OrderByCore({0, 1, 2, 3, 4, 5, 6, 7}, root.path());
  EXPECT_EQ(order, (std::vector<int>{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(ShareOf(order, 1, 2), (std::vector<int>{2, 6, 3, 7}));  // a socket
  EXPECT_EQ(OrderByCore({5, 9, 7}, root.path() / "nothing"), (std::vector<int>{5, 7, 9}));
}

TEST(Cores, AThreadIsPinnedWithThoseThatItStartsAndThenFreeAgain) {
  const std::vector<int> before = ReadCoreFacts().affinity;
  const auto mask = [] { return ReadCoreFacts().affinity; };
  {
    const PinnedThread pinned({before.back()});
    EXPECT_EQ(mask(), std::vector<int>{before.back()});
    std::vector<int> of_child;
    std::thread([&] { of_child = mask(); }).join();
    EXPECT_EQ(of_child, std::vector<int>{before.back()});
  }
  EXPECT_EQ(mask(), before);
  const PinnedThread nowhere({});
  const PinnedThread not_there({65'000});  // refused by the kernel
  EXPECT_EQ(mask(), before);
}

TEST(Cores, WriteLists) {
  EXPECT_EQ(FormatCpuList({}), "");
  EXPECT_EQ(FormatCpuList({8, 0, 1, 2}), "0-2,8");
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> cpus;
    for (int cpu = 0; cpu < 40; ++cpu) {
      if (random() % 2) cpus.push_back(cpu);
    }
    EXPECT_EQ(ParseCpuList(FormatCpuList(cpus)), cpus);
  }
}

TEST(Cores, ReadLists) {
  EXPECT_EQ(ParseCpuList("0-3,8\n"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(ParseCpuList(""), std::vector<int>{});
  for (const char* wrong : {"a", "3-1", "-1", "1,", "0-", "0-99999999", "1-2-3", "0x1"}) {
    EXPECT_EQ(ParseCpuList(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(ParseSlurmCpus("4"), 4);
  for (const char* wrong : {"", "0", "-2", "4x", "99999999999"}) {
    EXPECT_EQ(ParseSlurmCpus(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(ParseSlurmCpus(nullptr), std::nullopt);
}

TEST(Cgroup, ReadsLimits) {
  EXPECT_EQ(ParseCpuMax("150000 100000\n"), 1.5);
  EXPECT_EQ(ParseCpuMax("max 100000\n"), std::nullopt);
  for (const char* wrong : {"", "1", "1 0", "-1 100000", "a b", "1 2 3"}) {
    EXPECT_EQ(ParseCpuMax(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(ParseCpuQuota("-1\n", "100000\n"), std::nullopt);
  EXPECT_EQ(ParseMemoryLimit("max\n"), std::nullopt);
  EXPECT_EQ(ParseMemoryLimit("1073741824\n"), 1073741824);
  EXPECT_EQ(ParseMemoryLimit("9223372036854771712\n"), std::nullopt);  // version 1: none
}

TEST(Cgroup, FindsTheGroupOfAController) {
  const std::string text = "5:cpu,cpuacct:/job/a:b\n4:memory:/m\ngarbage\n:\n0::/v2\n";
  EXPECT_EQ(CgroupPath(text, "cpu"), "/job/a:b");
  EXPECT_EQ(CgroupPath(text, "memory"), "/m");
  EXPECT_EQ(CgroupPath(text, ""), "/v2");
  EXPECT_EQ(CgroupPath(text, "pids"), std::nullopt);
}

TEST(Cgroup, VersionTwoLimitsAddUpAlongThePath) {
  const FakeRoot root;
  root.Put("proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  root.Put("sys/fs/cgroup/slurm/cpu.max", "400000 100000\n");
  root.Put("sys/fs/cgroup/slurm/job_7/cpu.max", "200000 100000\n");
  root.Put("sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "max 100000\n");
  root.Put("sys/fs/cgroup/slurm/memory.max", "8589934592\n");
  root.Put("sys/fs/cgroup/slurm/job_7/memory.max", "max\n");
  EXPECT_EQ(ReadCgroupLimits(root.path()).cpus, 2.0);
  EXPECT_EQ(ReadCgroupLimits(root.path()).memory_bytes, 8589934592);
}

TEST(Cgroup, VersionOneInAContainerFallsBackToTheRoot) {
  const FakeRoot root;
  root.Put("proc/self/cgroup", "2:cpu,cpuacct:/docker/abc\n3:memory:/../x\n");
  root.Put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "350000\n");
  root.Put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  root.Put("sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576\n");
  EXPECT_EQ(ReadCgroupLimits(root.path()).cpus, 3.5);
  EXPECT_EQ(ReadCgroupLimits(root.path()).memory_bytes, 1048576);
}

TEST(Cgroup, NoFilesNoLimits) {
  const FakeRoot root;
  EXPECT_EQ(ReadCgroupLimits(root.path()).cpus, std::nullopt);
  EXPECT_EQ(ReadCgroupLimits(root.path()).memory_bytes, std::nullopt);
}

TEST(Machine, ReadsModelMemoryAndCaches) {
  const FakeRoot root;
  root.Put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Xeon: fast\n\nprocessor\t: 1\n");
  root.Put("proc/meminfo", "MemTotal:       16315432 kB\nMemAvailable:    100 kB\n");
  const std::string cache = "sys/devices/system/cpu/cpu0/cache/index";
  root.Put(cache + "0/level", "2\n");
  root.Put(cache + "0/size", "2M\n");
  root.Put(cache + "0/type", "Unified\n");
  root.Put(cache + "0/shared_cpu_list", "0-1\n");
  root.Put(cache + "1/level", "1\n");
  root.Put(cache + "1/size", "48K\n");
  root.Put(cache + "1/type", "Data\n");
  const Machine machine = ReadMachine(root.path());
  EXPECT_EQ(machine.cpu_model, "Xeon: fast");
  EXPECT_EQ(machine.memory_bytes, 16315432ll * 1024);
  EXPECT_EQ(machine.memory_available_bytes, 100 * 1024);
  ASSERT_EQ(machine.caches.size(), 2u);
  EXPECT_EQ(machine.caches[0].bytes, 48 << 10);
  EXPECT_EQ(machine.caches[0].type, "data");
  EXPECT_EQ(machine.caches[1].shared_by, 2);
  EXPECT_FALSE(machine.host.empty());
}

TEST(Machine, NamesArmProcessors) {
  EXPECT_EQ(ParseCpuModel("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"), "Arm Neoverse-N1");
  EXPECT_EQ(ParseCpuModel("CPU implementer\t: 0x99\nCPU part\t: 0x1\n"),
            "Arm implementer 0x99 part 0x1");
  EXPECT_EQ(ParseCpuModel("BogoMIPS: 5\n"), "");
}

TEST(Machine, SurvivesGarbage) {
  EXPECT_EQ(ParseCacheSize("x"), std::nullopt);
  EXPECT_EQ(ParseCacheSize("9223372036854775807M"), std::nullopt);
  EXPECT_EQ(ParseMeminfo("MemTotal: lots kB\n", "MemTotal"), 0);
  EXPECT_EQ(ParseMeminfo("MemTotal: 9223372036854775807 kB\n", "MemTotal"), 0);
  const std::string pieces = "0123456789-,:\n /.MKmaxcpu\t\0\xff";
  std::mt19937_64 random(11);
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (size_t n = random() % 40; n > 0; --n) text += pieces[random() % pieces.size()];
    ParseCpuList(text);
    ParseCpuMax(text);
    ParseMemoryLimit(text);
    CgroupPath(text, "cpu");
    ParseCpuModel(text);
    ParseCacheSize(text);
    ParseMeminfo(text, "MemTotal");
    const auto slurm = ParseSlurmCpus(text.c_str());
    EXPECT_TRUE(!slurm || *slurm > 0);
  }
}

}  // namespace
}  // namespace trireme
