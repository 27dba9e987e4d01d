// The transport between hosts: network namespaces with addresses of their own, joined by virtual
// cables that can be cut, and a file of their names.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <future>

#include "transport/check/conformance.h"
#include "transport/collective/broadcast.h"
#include "transport/tcp/listener.h"
#include "transport/tcp/testing_hosts.h"

namespace trireme {
namespace {

TEST_P(Hosts, Conforms) {
  CheckCase(GetParam(), [&](int ranks, double timeout_s, FunctionRef<void(World&)> fn) {
    Run(ranks, timeout_s, fn);
  });
}
INSTANTIATE_TEST_SUITE_P(Cases, Hosts, testing::ValuesIn(AllCases()), CaseName);

// A memory box on one host, its clients on both.
class HostsOfABox : public Hosts {};
TEST_P(HostsOfABox, Conform) {
  CheckCase(GetParam(), [&](int ranks, double timeout_s, FunctionRef<void(World&)> fn) {
    RunWithBox(ranks, timeout_s, {}, {}, fn);
  });
}
INSTANTIATE_TEST_SUITE_P(Cases, HostsOfABox, testing::ValuesIn(MemoryCases()), CaseName);

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

// ---- by name

// A promise that is kept once: told from one thread, awaited by another.
class Told {
 public:
  void operator()(const std::string& words) { words_.set_value(words); }
  std::string Await() { return words_.get_future().get(); }

 private:
  std::promise<std::string> words_;
};

// Three hosts that read the same file of names and know no other.
class NamedHosts : public Hosts {
 protected:
  NamedHosts() : Hosts(3) {}
  ~NamedHosts() override { std::remove(file_.c_str()); }
  void Names(const std::string& lines) const { std::ofstream(file_) << lines; }

  void GoTo(int host) const override {
    Hosts::GoTo(host);
    const auto cover = [](const char* by, const char* what) {
      return mount(by, what, nullptr, MS_BIND, nullptr) == 0;
    };
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        !cover(file_.c_str(), "/etc/hosts") || !cover("/dev/null", "/etc/resolv.conf")) {
      throw Error("{} cannot have a file of names of its own", names_[host]);
    }
  }

  TcpSetup Named(int rank, int size, double join_s = 100) const {
    TcpSetup setup = Setup(rank, size, 60);
    setup.meet = "rank-zero:4711";
    setup.bind = "0.0.0.0";
    setup.join_s = join_s;
    return setup;
  }
  // How the life of a rank on that host ends.
  std::future<std::string> StartOn(int host, const TcpSetup& setup) const {
    return std::async(std::launch::async, [this, host, setup] {
      return WhatOf([&] {
        GoTo(host);
        const auto world = JoinTcp(setup);
        Barrier(world->group(), 0);
      });
    });
  }

 private:
  const std::string file_ = fmt::format("{}/hosts-{}", testing::TempDir(), getpid());
};

TEST_F(NamedHosts, ANameThatComesLateIsFound) {
  Names("");
  Told waits;
  TcpSetup setup = Named(1, 2);
  setup.say = std::ref(waits);
  auto one = StartOn(1, setup);
  EXPECT_EQ(waits.Await(),
            "waiting for rank 0 at rank-zero:4711, a name without an address so far, at most 100 s "
            "(transport.join_s)");
  auto zero = StartOn(0, Named(0, 2));  // needs no address of its own
  Names("10.77.0.1 rank-zero\n");
  EXPECT_EQ(zero.get(), "");
  EXPECT_EQ(one.get(), "");
}

TEST_F(NamedHosts, ANameThatNeverComesIsNamed) {
  Names("10.77.0.1 rank-one\n");
  const std::string what = StartOn(1, Named(1, 2, 0.5)).get();
  EXPECT_TRUE(Has(what, "rank 1 of 2: cannot reach rank 0 at rank-zero:4711 within 0.5 s")) << what;
  EXPECT_TRUE(Has(what, "rank-zero does not resolve: ")) << what;
}

TEST_F(NamedHosts, AllAddressesOfANameAreTried) {
  Names("10.77.0.2 rank-zero\n10.77.0.1 rank-zero\n10.77.0.3 rank-zero\n");
  for (double join_s = 0.5;; join_s *= 2) {  // longer, if a busy machine does not get round
    const std::string what = StartOn(1, Named(1, 2, join_s)).get();
    if (!Has(what, "; ") && join_s < 60) continue;
    for (const char* address : kAddresses) {
      const std::string words = fmt::format("{}:4711: Connection refused", address);
      EXPECT_TRUE(Has(what, words)) << what;
    }
    break;
  }
  for (const int host : {0, 1, 2}) {
    auto zero = StartOn(host, Named(0, 2)), one = StartOn(1, Named(1, 2));
    EXPECT_EQ(zero.get(), "");
    EXPECT_EQ(one.get(), "");
  }
}

// Machines that die hang up nowhere.
TEST_F(NamedHosts, RanksComeBackElsewhere) {
  for (const int lost : {0, 1}) {
    Names("10.77.0.1 rank-zero\n");
    std::atomic<bool> stop = false;
    std::future<std::string> ends[2];
    for (const int rank : {0, 1}) {
      Told waits;
      TcpSetup setup = Named(rank, 3);
      setup.say = std::ref(waits);
      if (rank == lost) setup.stop = [&] { return stop.load(); };
      ends[rank] = StartOn(rank, setup);
      waits.Await();  // rank 1 has reported meanwhile
    }
    Cable("down", lost);
    if (lost == 0) Names("10.77.0.3 rank-zero\n");
    Told comes;
    TcpSetup setup = Named(lost, 3);
    setup.say = std::ref(comes);
    auto again = StartOn(2, setup);
    comes.Await();
    auto two = StartOn(2, Named(2, 3));
    EXPECT_EQ(again.get(), "");
    EXPECT_EQ(two.get(), "");
    EXPECT_EQ(ends[1 - lost].get(), "");
    stop = true;
    EXPECT_TRUE(Has(ends[lost].get(), "stopped by a signal"));
    Cable("up", lost);
  }
}

TEST_F(NamedHosts, ARankThatIsOnTwoHostsIsRefused) {
  Names("10.77.0.1 rank-zero\n");
  auto zero = StartOn(0, Named(0, 3)), one = StartOn(1, Named(1, 3)), two = StartOn(2, Named(1, 3));
  for (auto* rank : {&zero, &one, &two}) {
    const std::string what = rank->get();
    EXPECT_TRUE(Has(what, "rank 1 of 3 was started twice")) << what;
  }
}

}  // namespace
}  // namespace trireme
