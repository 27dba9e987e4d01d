// kill -9 of the clients of a memory box, of those that hold locks, and of the box, which keeps its
// contents in a file or goes back to a snapshot; and a full disk. What was acknowledged is there
// once. TRIREME_KILLS, TRIREME_SERVER_KILLS and TRIREME_SEED in the environment ask for more
// (scripts/soak-async).
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <numeric>
#include <random>

#include "support/box_test.h"
#include "transport/memory/mapped.h"
#include "transport/shared_array.h"

namespace trireme::whole {
namespace {

class MemoryKillTest : public MemoryBoxTest {
 protected:
  MemoryKillTest() { random_.seed(unsigned(Wanted("TRIREME_SEED", 10))); }
  int Draw(int below) { return int(random_() % unsigned(below)); }
  void Pause() { SleepFor(std::uniform_real_distribution<double>(0.01, 0.1)(random_)); }

  // A process of this test.
  static pid_t Fork(const std::function<void()>& life) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    int status = 0;
    try {
      life();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "client: %s\n", error.what());
      status = 1;
    }
    _exit(status);
  }
  static int Join(pid_t pid) {
    int status = -1;
    waitpid(pid, &status, 0);
    return status;
  }

  const int clients_ = Wanted("TRIREME_KILLS", 5), boxes_ = Wanted("TRIREME_SERVER_KILLS", 5);
  std::mt19937 random_;
};

// Each client counts in a stretch of its own: whole numbers are exact, so a stretch says how many
// adds of its client are there. One more than acknowledged may be there for each life that was
// killed: it did not live to hear of it.
TEST_F(MemoryKillTest, AddsOfSixteenClientsAreThereExactlyOnce) {
  SCOPED_TRACE(SeedText(Wanted("TRIREME_SEED", 10)));
  constexpr int kClients = 16, kAdds = 1000;
  constexpr uint64_t kLength = 500;
  auto box = Serve({"--file", "box"});
  ASSERT_TRUE(box);
  SharedArray<std::atomic<int>> acknowledged(kClients + 1);
  std::atomic<int>& over = acknowledged[kClients];
  const auto start = [&](int c) {
    return Fork([&, c] {
      // Some of them look at the file themselves.
      const auto memory = c % 4 == 3 ? ConnectMappedFile(At("box"), kTimeout) : Connect();
      const Region region = memory->Create("w", RegionType::kF32, kClients * kLength);
      const std::vector<float> ones(kLength, 1);
      while (!over.load() || acknowledged[c].load() < kAdds) {
        memory->Accumulate(region, uint64_t(c) * kLength, ones).Wait();
        ++acknowledged[c];
      }
    });
  };
  std::vector<pid_t> clients;
  for (int c = 0; c < kClients; ++c) clients.push_back(start(c));
  const auto memory = Connect();
  const Region region = memory->Open("w", After(kTimeout));
  std::vector<int> kills(kClients);
  std::vector<int> victims(size_t(clients_), 0);  // a client, or the box
  victims.insert(victims.end(), size_t(boxes_), 1);
  std::ranges::shuffle(victims, random_);
  for (const int victim : victims) {
    Pause();
    if (victim == 1) {
      box->Kill(SIGKILL);
      box = Serve({"--file", "box"});
      ASSERT_TRUE(box);
      continue;
    }
    const auto c = size_t(Draw(kClients));
    kill(clients[c], SIGKILL);
    Join(clients[c]);
    ++kills[c];
    clients[c] = start(int(c));
  }
  over.store(1);
  for (const pid_t pid : clients) EXPECT_EQ(Join(pid), 0);
  uint64_t version = 0;
  std::vector<float> values(region.length);
  memory->Get(region, 0, values, &version).Wait();
  uint64_t all = 0;
  for (int c = 0; c < kClients; ++c) {
    const std::vector<float> own(values.begin() + c * int(kLength),
                                 values.begin() + (c + 1) * int(kLength));
    EXPECT_EQ(own, std::vector<float>(kLength, own[0])) << c;
    const int unheard = int(own[0]) - acknowledged[c].load();
    EXPECT_TRUE(unheard >= 0 && unheard <= kills[size_t(c)]) << c << ": " << unheard;
    EXPECT_GE(acknowledged[c].load(), kAdds);
    all += uint64_t(own[0]);
  }
  EXPECT_EQ(version, all);
  std::printf("%llu adds, %d clients and %d boxes killed\n", static_cast<unsigned long long>(all),
              clients_, boxes_);
}

// A box whose machine has died has a snapshot and no file that can be trusted. What it had is of
// one moment, and clients hear that it is another one.
TEST_F(MemoryKillTest, ABoxGoesBackToItsSnapshot) {
  SCOPED_TRACE(SeedText(Wanted("TRIREME_SEED", 10)));
  constexpr uint64_t kLength = 100'000;
  const Words words = {"--file", "box", "--snapshot-s", "0.02"};
  auto box = Serve(words);
  ASSERT_TRUE(box);
  const auto memory = Connect();
  const std::vector<float> ones(kLength, 1);
  std::vector<float> values(kLength);
  uint64_t version = 0;
  for (int k = 0; k < boxes_; ++k) {
    const Region region = memory->Create("w", RegionType::kF32, kLength);
    const Stopwatch watch;
    for (int adds = 0; adds < 5 || !Exists(At("box.snapshot")) || watch.seconds() < 0.1; ++adds) {
      memory->Accumulate(region, 0, ones, {}, &version).Wait();
    }
    box->Kill(SIGKILL);
    std::filesystem::remove(At("box"));
    box = Serve(words);
    ASSERT_TRUE(box);
    EXPECT_NE(box->err().find("restored 1 region"), std::string::npos) << box->err();
    EXPECT_THROW(memory->Accumulate(region, 0, ones).Wait(), MemoryRenewed);
    uint64_t restored = 0;
    memory->Get(memory->Open("w", After(kTimeout)), 0, values, &restored).Wait();
    EXPECT_LE(restored, version);
    EXPECT_EQ(values, std::vector<float>(kLength, float(restored)));
  }
}

// The lock of a client that is killed goes to the next one: at once by the file, after the box's
// --timeout-s by a socket.
TEST_F(MemoryKillTest, LocksOfKilledClientsAreFreeAgain) {
  auto box = Serve({"--file", "box"}, "1");
  ASSERT_TRUE(box);
  SharedArray<std::atomic<int>> has_it(1);
  const auto memory = ConnectMappedFile(At("box"), kTimeout);
  const Region region = memory->Create("w", RegionType::kF32, 10);
  for (int k = 0; k < clients_; ++k) {
    has_it[0].store(0);
    const pid_t owner = Fork([&] {
      const auto own = k % 5 == 0 ? Connect() : ConnectMappedFile(At("box"), kTimeout);
      const Region same = own->Open("w", After(kTimeout));
      if (!own->Lock(same, After(kTimeout))) throw Error("no lock");
      has_it[0].store(1);
      for (;;) own->Accumulate(same, 0, std::vector<float>(10, 1)).Wait();
    });
    while (!has_it[0].load()) {
      ASSERT_EQ(waitpid(owner, nullptr, WNOHANG), 0) << "the owner has ended";
      SleepFor(0.001);
    }
    EXPECT_FALSE(memory->Lock(region, After(0)));
    kill(owner, SIGKILL);
    Join(owner);
    EXPECT_TRUE(memory->Lock(region, After(kTimeout))) << k;
    memory->Unlock(region);
  }
}

// A disk that fills up refuses a region or skips a snapshot; what is there stays, and grows again
// when there is room.
TEST_F(MemoryKillTest, AFullDiskChangesNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "a small disk needs root";
  std::filesystem::create_directory(At("disk"));
  ASSERT_EQ(mount("tmpfs", At("disk").c_str(), "tmpfs", 0, "size=16M"), 0);
  const struct Unmount {
    std::string where;
    ~Unmount() { umount2(where.c_str(), MNT_DETACH); }
  } unmount{At("disk")};
  auto box = Serve({"--file", "disk/box", "--snapshot-s", "0.05"});
  ASSERT_TRUE(box);
  const auto memory = Connect();
  const Region region = memory->Create("w", RegionType::kF32, 500'000);
  const std::vector<float> ones(region.length, 1);
  uint64_t adds = 0;
  for (int k = 0; k < clients_; ++k) {
    memory->Accumulate(region, 0, ones).Wait();
    ++adds;
    const std::string fill =
        fmt::format("dd if=/dev/zero of={} bs=64K >/dev/null 2>&1", At("disk/fill"));
    EXPECT_NE(std::system(fill.c_str()), 0);  // to the last page
    EXPECT_THROW(memory->Create(fmt::format("more{}", k), RegionType::kF32, 1'000'000), Error);
    for (int i = 0; i < 3; ++i, ++adds) memory->Accumulate(region, 0, ones).Wait();
    EXPECT_TRUE(AwaitWords(*box, "no snapshot was taken")) << box->err();
    std::filesystem::remove(At("disk/fill"));
    if (k == 0) memory->Create("small", RegionType::kI64, 1);
    uint64_t version = 0;
    std::vector<float> values(region.length);
    memory->Get(region, 0, values, &version).Wait();
    EXPECT_EQ(version, adds);
    EXPECT_EQ(values, std::vector<float>(region.length, float(adds)));
  }
  box->Kill(SIGTERM);
  EXPECT_EQ(box->Wait(kTimeout).exit_code, 143) << box->err();
}

}  // namespace
}  // namespace trireme::whole
