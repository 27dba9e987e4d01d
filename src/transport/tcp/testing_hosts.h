#pragma once
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "transport/check/conformance.h"
#include "transport/check/with_memory.h"
#include "transport/first_error.h"
#include "transport/memory/box.h"
#include "transport/tcp/memory_door.h"
#include "transport/tcp/memory_way.h"
#include "transport/tcp/testing.h"

namespace trireme {

inline bool Shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

constexpr const char* kAddresses[] = {"10.77.0.1", "10.77.0.2", "10.77.0.3"};

// Machines for a test: network namespaces with addresses of their own, joined by virtual cables
// that can be cut.
class Hosts : public testing::TestWithParam<ConformanceCase> {
 protected:
  explicit Hosts(int hosts = 2) : names_(size_t(hosts)) {}
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
    if (!Shell("ip -V")) GTEST_SKIP() << "there is no ip (package iproute2)";
    for (size_t h = 0; h < names_.size(); ++h) {
      names_[h] = fmt::format("trireme-{}-{}", getpid(), h);
    }
    // The last one has the switch.
    const std::string& last = names_.back();
    std::string make = fmt::format(
        "ip netns add {0} && ip -n {0} link set lo up && ip -n {0} link add v0 type bridge && "
        "ip -n {0} addr add {1}/24 dev v0 && ip -n {0} link set v0 up",
        last, kAddresses[names_.size() - 1]);
    for (size_t h = 0; h + 1 < names_.size(); ++h) {
      make += fmt::format(
          " && ip netns add {0} && ip -n {0} link set lo up && "
          "ip -n {0} link add v0 type veth peer name p{1} netns {2} && "
          "ip -n {0} addr add {3}/24 dev v0 && ip -n {0} link set v0 up && "
          "ip -n {2} link set p{1} master v0 up",
          names_[h], h, last, kAddresses[h]);
    }
    if (!Shell(make)) GTEST_SKIP() << "network namespaces cannot be made here";
  }
  void TearDown() override {
    for (const std::string& name : names_) {
      if (!name.empty()) Shell("ip netns del " + name);
    }
  }

  // The calling thread, and those that it starts, are on that host from now on.
  virtual void GoTo(int host) const {
    const int fd = open(("/var/run/netns/" + names_[host]).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) throw Error("cannot enter {}", names_[host]);
    close(fd);
  }

  TcpSetup Setup(int rank, int size, double timeout_s) const {
    return {.rank = rank,
            .size = size,
            .meet = fmt::format("{}:4711", kAddresses[0]),
            .bind = kAddresses[rank % 2],
            .secret = "in vino veritas",
            .join_s = timeout_s,
            .timeout_s = timeout_s};
  }

  // Even ranks on one host, odd ones on the other.
  void Run(int ranks, double timeout_s, FunctionRef<void(World&)> fn) const {
    FirstError error;
    {
      std::vector<std::jthread> threads;
      for (int r = 0; r < ranks; ++r) {
        threads.emplace_back([&, r] {
          GoTo(r % 2);
          TcpSetup setup = Setup(r, ranks, timeout_s);
          setup.join_s = 60;  // on a busy machine, too
          RunTcpRank(setup, fn, error);
        });
      }
    }
    error.Rethrow(ranks);
  }

  // The same ranks, each connected to a memory box on the first host, as `client` says. By `bulk`
  // the box offers to move long values.
  void RunWithBox(int ranks, double timeout_s, const BulkOffer& bulk, const TcpMemorySetup& client,
                  FunctionRef<void(World&)> fn) const {
    constexpr double kPatience_s = 60;  // of a machine with much to do
    const std::string secret = "in vino veritas";
    MemoryBox box({.bytes = size_t{64} << 20, .threads = 2, .timeout_s = kPatience_s});
    const auto open = [&] {
      GoTo(0);
      return std::make_unique<MemoryDoor>(
          box, MemoryDoorSetup{
                   .listen = fmt::format("{}:0", kAddresses[0]), .secret = secret, .bulk = bulk});
    };
    const auto door = std::async(std::launch::async, open).get();
    Run(ranks, timeout_s, [&](World& world) {
      TcpMemorySetup setup = client;
      setup.meet = door->address();
      setup.secret = secret;
      setup.timeout_s = kPatience_s;
      const auto memory = ConnectTcp(setup);
      WithMemory own(world, *memory);
      fn(own);
    });
  }

  void Cable(const char* state, int host = 0) const {
    if (!Shell(fmt::format("ip -n {} link set v0 {}", names_[host], state)))
      throw Error("no cable");
  }

  std::vector<std::string> names_;
};

}  // namespace trireme
