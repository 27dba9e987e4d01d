// What dies at either end of the way `fabric`. The test itself never opens libfabric: what it forks
// does, and a process that has threads of libfabric must not be forked.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

#include "transport/fabric/end.h"
#include "transport/shared_array.h"
#include "transport/tcp/memory_door.h"
#include "transport/tcp/memory_way.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr double kTimeout_s = 60;  // of a machine with much to do
const MemoryBoxSetup kSetup = {.bytes = size_t{64} << 20, .threads = 2, .timeout_s = kTimeout_s};
const std::string kTcp = "tcp;ofi_rxm", kShm = "shm";

class Plugin : public testing::Environment {
  void SetUp() override { setenv("TRIREME_FABRIC_PLUGIN", TRIREME_FABRIC_PLUGIN_FILE, 1); }
};
const auto* const kPlugin = testing::AddGlobalTestEnvironment(new Plugin);

TcpMemorySetup ToBox(const std::string& address) {
  return {.meet = address,
          .timeout_s = kTimeout_s,
          .long_values = LongValues::kBulk,
          .open_bulk = OpenFabricEnd};
}

// A process that ends without looking back.
pid_t Fork(FunctionRef<void()> fn) {
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    fn();
    _exit(0);
  } catch (const std::exception& error) {
    fprintf(stderr, "%s\n", error.what());
  }
  _exit(1);
}

int End(pid_t child, int signal = 0) {
  if (signal != 0) kill(child, signal);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

struct Shared {
  std::atomic<int> port, started;
  std::atomic<int64_t> done;
};

std::string WaitForBox(Shared& shared) {
  while (shared.port.load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return "127.0.0.1:" + std::to_string(shared.port.load());
}

// A box in a process of its own, on the same port every time.
void KeepBox(Shared& shared, const MemoryBoxSetup& setup, const std::string& provider) {
  MemoryBox box(setup);
  MemoryDoor door(box, {.listen = "127.0.0.1:" + std::to_string(shared.port.load()),
                        .bulk = {.provider = provider, .open = OpenFabricEnd}});
  const std::string address = door.address();
  shared.port.store(std::stoi(address.substr(address.rfind(':') + 1)));
  pause();
}

// Clients are killed inside adds: each add is there or is not, and others go on.
TEST(Fabric, WhatAKilledClientAddedIsWhole) {
  SharedArray<Shared> place(1);
  Shared& shared = place[0];
  constexpr size_t kLength = 1'000'000;
  const pid_t box = Fork([&] { KeepBox(shared, kSetup, kTcp); });
  const std::string address = WaitForBox(shared);
  const auto add = [&](int times) {
    const auto memory = ConnectTcp(ToBox(address));
    const Region region = memory->Create("w", RegionType::kF32, kLength);
    ++shared.started;
    const std::vector<float> ones(kLength, 1);
    for (int i = 0; i < times; ++i) {
      memory->Accumulate(region, 0, ones).Wait();
      ++shared.done;
    }
  };
  for (int i = 0; i < 3; ++i) {
    const int before = shared.started.load();
    const int64_t done = shared.done.load();
    const pid_t killed = Fork([&] { add(1'000'000); });
    while (shared.started.load() == before || shared.done.load() < done + 2 + i) {
      ASSERT_EQ(waitpid(killed, nullptr, WNOHANG), 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(700 * i));
    End(killed, SIGKILL);
  }
  const pid_t other = Fork([&] { add(5); });
  EXPECT_EQ(End(other), 0);
  const pid_t looks = Fork([&] {
    const auto memory = ConnectTcp(ToBox(address));
    const Region region = memory->Open("w", After(kTimeout_s));
    std::vector<float> got(kLength);
    uint64_t version = 0;
    memory->Get(region, 0, got, &version).Wait();
    const auto acknowledged = uint64_t(shared.done.load());
    if (version < acknowledged || version > acknowledged + 3) throw Error("{} adds", version);
    for (const float value : got) {
      if (value != float(version)) throw Error("{} instead of {}", value, version);
    }
  });
  EXPECT_EQ(End(looks), 0);
  End(box, SIGKILL);
}

// A box with a file is killed and started again: clients open other ends, nothing is lost.
TEST(Fabric, ABoxThatComesBackGoesOn) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("trireme-fabric-{}", getpid());
  fs::create_directories(folder);
  MemoryBoxSetup setup = kSetup;
  setup.file = folder / "box";
  SharedArray<Shared> place(1);
  Shared& shared = place[0];
  constexpr size_t kLength = 500'000;
  pid_t box = Fork([&] { KeepBox(shared, setup, kTcp); });
  const std::string address = WaitForBox(shared);
  const pid_t client = Fork([&] {
    const auto memory = ConnectTcp(ToBox(address));
    const Region region = memory->Create("w", RegionType::kF32, kLength);
    const std::vector<float> ones(kLength, 1);
    std::vector<float> got(kLength);
    while (shared.done.load() < 60) {
      uint64_t version = 0;
      memory->Accumulate(region, 0, ones, {}, &version).Wait();
      if (version != uint64_t(++shared.done)) throw Error("version {}", version);
      memory->Get(region, 0, got).Wait();
      for (const float value : got) {
        if (value != float(version)) throw Error("{} instead of {}", value, version);
      }
    }
  });
  for (int i = 1; i <= 2; ++i) {
    while (shared.done.load() < 10 * i) {
      ASSERT_EQ(waitpid(client, nullptr, WNOHANG), 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    End(box, SIGKILL);
    box = Fork([&] { KeepBox(shared, setup, kTcp); });
  }
  EXPECT_EQ(End(client), 0);
  End(box, SIGKILL);
  fs::remove_all(folder);
}

// A box that is gone is as lost as over a connection.
TEST(Fabric, ABoxThatStaysAwayIsLost) {
  SharedArray<Shared> place(1);
  Shared& shared = place[0];
  const pid_t box = Fork([&] { KeepBox(shared, kSetup, kTcp); });
  const std::string address = WaitForBox(shared);
  const pid_t client = Fork([&] {
    TcpMemorySetup setup = ToBox(address);
    setup.timeout_s = 1;
    std::unique_ptr<Memory> memory;
    while (!memory) {  // within a second, on a machine with much to do
      try {
        memory = ConnectTcp(setup);
      } catch (const PeerLost&) {
      }
    }
    const std::vector<float> ones(100'000, 1);
    std::vector<float> got(100'000);
    const Region region = memory->Create("w", RegionType::kF32, ones.size());
    ++shared.started;
    while (shared.done.load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto is_lost = [](FunctionRef<void()> fn) {
      try {
        fn();
      } catch (const PeerLost&) {
        return;
      }
      throw Error("the box is not lost");
    };
    is_lost([&] { memory->Accumulate(region, 0, ones).Wait(); });
    is_lost([&] { memory->Get(region, 0, got).Wait(); });
  });
  while (shared.started.load() == 0) {
    ASSERT_EQ(waitpid(client, nullptr, WNOHANG), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  End(box, SIGKILL);
  ++shared.done;
  EXPECT_EQ(End(client), 0);
}

TEST(Fabric, NoNameStaysInShm) {
  SharedArray<Shared> place(1);
  Shared& shared = place[0];
  const pid_t box = Fork([&] { KeepBox(shared, kSetup, kShm); });
  const std::string address = WaitForBox(shared);
  const pid_t client = Fork([&] {
    const auto memory = ConnectTcp(ToBox(address));
    ++shared.started;
    pause();
  });
  while (shared.started.load() == 0) {
    ASSERT_EQ(waitpid(client, nullptr, WNOHANG), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  End(client, SIGKILL);
  End(box, SIGKILL);
  for (const auto& entry : fs::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    for (const pid_t process : {client, box}) {
      EXPECT_FALSE(name.starts_with(fmt::format("{}:", process))) << name;
    }
  }
}

}  // namespace
}  // namespace trireme
