// The transport between two hosts: network namespaces with addresses of their own, joined by a
// virtual cable that can be cut.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "transport/check/conformance.h"
#include "transport/collective/broadcast.h"
#include "transport/tcp/listener.h"
#include "transport/tcp/testing.h"

namespace trireme {
namespace {

bool Shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

constexpr const char* kAddresses[] = {"10.77.0.1", "10.77.0.2"};

class Hosts : public testing::TestWithParam<ConformanceCase> {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
    if (!Shell("ip -V")) GTEST_SKIP() << "there is no ip (package iproute2)";
    for (int h = 0; h < 2; ++h) names_[h] = fmt::format("trireme-{}-{}", getpid(), h);
    const std::string make = fmt::format(
        "ip netns add {0} && ip netns add {1} && "
        "ip -n {0} link add v0 type veth peer name v1 netns {1} && "
        "ip -n {0} addr add {2}/24 dev v0 && ip -n {1} addr add {3}/24 dev v1 && "
        "ip -n {0} link set v0 up && ip -n {1} link set v1 up && "
        "ip -n {0} link set lo up && ip -n {1} link set lo up",
        names_[0], names_[1], kAddresses[0], kAddresses[1]);
    if (!Shell(make)) GTEST_SKIP() << "network namespaces cannot be made here";
  }
  void TearDown() override {
    for (const std::string& name : names_) {
      if (!name.empty()) Shell("ip netns del " + name);
    }
  }

  // The calling thread, and those that it starts, are on that host from now on.
  void GoTo(int host) const {
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

  void Cable(const char* state) const {
    if (!Shell(fmt::format("ip -n {} link set v0 {}", names_[0], state))) throw Error("no cable");
  }

  std::string names_[2];
};

TEST_P(Hosts, Conforms) {
  CheckCase(GetParam(), [&](int ranks, double timeout_s, FunctionRef<void(World&)> fn) {
    Run(ranks, timeout_s, fn);
  });
}
INSTANTIATE_TEST_SUITE_P(Cases, Hosts, testing::ValuesIn(AllCases()), CaseName);

using TwoHosts = Hosts;

TEST_F(TwoHosts, ACutIsSeenAndHeals) {
  std::atomic<bool> talking = false, healed = false, cut_seen = false;
  std::jthread scissors([&](const std::stop_token& stop) {
    const auto await = [&](const std::atomic<bool>& happened) {
      while (!happened && !stop.stop_requested()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    };
    await(talking);
    Cable("down");
    await(cut_seen);
    Cable("up");
    healed = true;
  });
  Run(2, 60, [&](World& world) {
    const int other = 1 - world.rank();
    Link& link = world.LinkTo(other);
    std::vector<char> out(300'000), in(out.size());
    std::jthread looker([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        if (world.group().silent_s(other) > 2.2) cut_seen = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
    for (int i = 0;; ++i) {  // until both know that the cut has passed
      out.assign(out.size(), char(i));
      out[0] = healed;
      Ticket arriving = world.group().Receive(other, 1, Bytes(in));
      world.group().Send(other, 1, Bytes(out)).Wait();
      arriving.Wait();
      ASSERT_EQ(in.back(), char(i));
      link.Send({.kind = i});
      Message message;
      ASSERT_EQ(link.Receive(message, After(60)), Arrival::kMessage);
      ASSERT_EQ(message.kind, i);
      if (out[0] && in[0]) break;
      talking = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    while (world.group().silent_s(other) >=
           2) {  // for ever, and the test fails, if it stays silent
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  EXPECT_TRUE(cut_seen);
}

TEST_F(TwoHosts, WithoutTheSecretNobodyGetsInFromOutside) {
  std::atomic<bool> over = false;  // nobody waits at the door any more
  const auto knock = [&](const std::string& secret) -> std::string {
    std::string what;
    std::jthread([&] {
      GoTo(1);
      asio::io_context io;
      const auto dial = [&]() -> asio::awaitable<void> {
        uint64_t found = 0;
        const Hello hello = {Purpose::kMeet, 2, 1, 0, 5};
        const asio::ip::tcp::endpoint where(asio::ip::make_address(kAddresses[0]), 4711);
        for (;;) {
          try {
            co_await Dial(where, hello, secret, &found);
            what = "let in";
          } catch (const Error& error) {
            what = error.what();
          }
          if (!Has(what, "Connection refused") || over) break;
          what.clear();  // nobody listens yet
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
      };
      asio::co_spawn(io, dial(), asio::detached);
      io.run();
    }).join();
    return what;
  };
  for (const std::string& secret : {std::string("in vino veritas"), std::string()}) {
    const std::string words = secret.empty() ? "has no secret" : "secret is different";
    for (double join_s = 3;; join_s *= 4) {  // longer, if a busy machine did not let both meet
      over = false;
      std::string what, at_zero;
      {
        std::jthread rank0([&] {
          GoTo(0);
          TcpSetup setup = Setup(0, 2, join_s);
          setup.secret = secret;
          at_zero = WhatOf([&] { JoinTcp(setup); });
          over = true;
        });
        what = knock(secret.empty() ? "" : "in vino vanitas");
      }
      if (!Has(what, words) && what != "let in" && join_s < 100) continue;
      EXPECT_TRUE(Has(what, words)) << what;
      EXPECT_TRUE(Has(at_zero, "rank 1 is missing")) << at_zero;
      EXPECT_TRUE(Has(at_zero, "refused 10.77.0.2")) << at_zero;
      break;
    }
  }
}

}  // namespace
}  // namespace trireme
