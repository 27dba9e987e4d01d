#include "transport/tcp/world.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <csignal>
#include <span>
#include <thread>

#include "base/clock.h"
#include "transport/collective/broadcast.h"
#include "transport/tcp/testing.h"

namespace trireme {
namespace {

constexpr double kSoon = 60;  // a busy machine must not make a test fail

// ---- ends

TEST(TcpEnd, ARankThatHasEndedIsLostOnlyToThoseWhoWaitForIt) {
  const TcpSetup setup = Meet(3, kSoon);
  const auto stay = [](World& world) {
    const int other = 2 - world.rank();
    std::vector<char> out(1), in(1), last(1);
    const auto meet = [&] {
      Ticket arriving = world.group().Receive(other, 1, Bytes(in));
      world.group().Send(other, 1, Bytes(out)).Wait();
      arriving.Wait();
    };
    for (int i = 0; i < 30; ++i) {
      meet();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    world.group().Receive(1, 0, Bytes(last)).Wait();  // its last words are kept
    EXPECT_EQ(last[0], 'x');
    meet();  // whoever waits first now ends the group
    const std::string what = WhatOf([&] { world.group().Receive(1, 0, Bytes(last)).Wait(); });
    EXPECT_TRUE(Has(what, "rank 1 is lost: it has left")) << what;
  };
  auto zero = Start(setup, 0, stay), two = Start(setup, 2, stay);
  auto one = Start(setup, 1, [](World& world) {
    std::vector<char> v(1, 'x');
    for (const int r : {0, 2}) world.group().Send(r, 0, Bytes(v)).Wait();
  });
  EXPECT_EQ(one.get(), "");
  EXPECT_EQ(zero.get(), "");
  EXPECT_EQ(two.get(), "");
}

TEST(TcpEnd, LinksDeliverTheirLastWords) {
  const TcpSetup setup = Meet(2, kSoon);
  const auto talk = [](World& world) {
    Link& link = world.LinkTo(1 - world.rank());
    link.Send({.kind = 3, .body = std::vector<float>(1'000'000, 1.0f)});
    if (world.rank() == 1) return;  // ends at once
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    Message message;
    EXPECT_EQ(link.Receive(message, After(kSoon)), Arrival::kMessage);
    EXPECT_EQ(message.body.size(), 1'000'000u);
    EXPECT_EQ(link.Receive(message, After(kSoon)), Arrival::kGone);
  };
  auto zero = Start(setup, 0, talk), one = Start(setup, 1, talk);
  EXPECT_EQ(one.get(), "");
  EXPECT_EQ(zero.get(), "");
}

// Ranks that are processes: what each ended with.
class Processes {
 public:
  Processes(const TcpSetup& setup, FunctionRef<void(World&)> fn) {
    for (int r = 0; r < setup.size; ++r) {
      int ends[2];
      if (pipe(ends) != 0) std::abort();
      const pid_t pid = fork();
      if (pid == 0) {
        TcpSetup mine = setup;
        mine.rank = r;
        if (r > 0) close(mine.listener);
        const std::string what = WhatOf([&] {
          const auto world = JoinTcp(mine);
          fn(*world);
        });
        if (write(ends[1], what.data(), what.size()) < 0) _exit(2);
        _exit(0);
      }
      close(ends[1]);
      ranks_.push_back({pid, ends[0]});
    }
    close(setup.listener);
  }
  pid_t pid(int rank) const { return ranks_[size_t(rank)].pid; }
  std::string End(int rank) {
    std::string what;
    char buffer[1000];
    for (ssize_t n; (n = read(ranks_[size_t(rank)].pipe, buffer, sizeof(buffer))) > 0;) {
      what.append(buffer, size_t(n));
    }
    close(ranks_[size_t(rank)].pipe);
    waitpid(pid(rank), nullptr, 0);
    return what;
  }

 private:
  struct Rank {
    pid_t pid;
    int pipe;
  };
  std::vector<Rank> ranks_;
};

TEST(TcpEnd, AKilledRankIsNamedByAllAtOnce) {
  for (const int victim : {0, 2}) {
    Processes ranks(Meet(4, 3600), [&](World& world) {  // longer than this test may take
      std::vector<char> v(1);
      Barrier(world.group(), 0);
      if (world.rank() == victim) raise(SIGKILL);
      world.group().Receive((world.rank() + 1) % 4, 1, Bytes(v)).Wait();
    });
    for (int r = 0; r < 4; ++r) {
      const std::string what = ranks.End(r);
      if (r == victim) continue;
      EXPECT_EQ(what,
                fmt::format("rank {} of 4: rank {} is lost: its connection closed", r, victim));
    }
  }
}

TEST(TcpEnd, AStoppedRankIsSilentAndGoesOnAfterwards) {
  Processes ranks(Meet(2, kSoon), [](World& world) {
    std::vector<char> v(1);
    Barrier(world.group(), 0);
    if (world.rank() == 0) {
      double longest = 0;
      while (longest < 2.5) {
        longest = std::max(longest, world.group().silent_s(1));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      world.group().Send(1, 1, Bytes(v)).Wait();
    } else {
      raise(SIGSTOP);
      EXPECT_LT(world.group().silent_s(0), 2);
      world.group().Receive(0, 1, Bytes(v)).Wait();
      if (testing::Test::HasFailure()) throw Error("silence where there was none");
    }
    Barrier(world.group(), 0);
  });
  siginfo_t stopped;
  ASSERT_EQ(waitid(P_PID, id_t(ranks.pid(1)), &stopped, WSTOPPED | WNOWAIT), 0);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  kill(ranks.pid(1), SIGCONT);
  EXPECT_EQ(ranks.End(0), "");
  EXPECT_EQ(ranks.End(1), "");
}

// ---- traffic

TEST(TcpTraffic, ALongMessageThatNobodyTakesBlocksNoOtherTag) {
  RunTcpRanks(2, kSoon, [](World& world) {
    Group& group = world.group();
    std::vector<char> large(10'000'000, char(world.rank())), late(large.size());
    std::vector<char> small(60'000), small_in(small.size());
    const int other = 1 - world.rank();
    Ticket stuck = group.Send(other, 1, Bytes(large));
    for (int i = 0; i < 100; ++i) {  // more than the credit
      Ticket arriving = group.Receive(other, 2, Bytes(small_in));
      group.Send(other, 2, Bytes(small)).Wait();
      arriving.Wait();
    }
    group.Receive(other, 1, Bytes(late)).Wait();
    EXPECT_EQ(late, std::vector<char>(large.size(), char(other)));
    stuck.Wait();
  });
}

TEST(TcpTraffic, AThrottledRankIsAsSlowAsItSays) {
  TcpSetup setup = Meet(2, kSoon);
  setup.throttle = 20e6;
  const auto talk = [](World& world) {
    std::vector<char> out(4'000'000), in(out.size());
    const Stopwatch watch;  // before the other one may begin
    Barrier(world.group(), 0);
    Ticket arriving = world.group().Receive(1 - world.rank(), 1, Bytes(in));
    world.group().Send(1 - world.rank(), 1, Bytes(out)).Wait();
    arriving.Wait();
    EXPECT_GT(watch.seconds(), 0.17);
    Link& link = world.LinkTo(1 - world.rank());
    const Stopwatch again;
    Barrier(world.group(), 0);
    link.Send({.body = std::vector<float>(1'000'000)});
    Message message;
    EXPECT_EQ(link.Receive(message, After(kSoon)), Arrival::kMessage);
    EXPECT_GT(again.seconds(), 0.15);
  };
  auto zero = Start(setup, 0, talk), one = Start(setup, 1, talk);
  EXPECT_EQ(zero.get(), "");
  EXPECT_EQ(one.get(), "");
}

TEST(TcpTraffic, AFarRankAnswersAsLateAsItSays) {
  TcpSetup setup = Meet(2, kSoon);
  setup.latency_s = 0.02;
  const auto talk = [](World& world) {
    std::vector<char> out(300'000), in(out.size());  // longer than what is sent without asking
    const int other = 1 - world.rank();
    const Stopwatch watch;  // before the other one may begin
    Barrier(world.group(), 0);
    for (int round = 0; round < 3; ++round) {  // there and back
      if (world.rank() == 0) world.group().Send(other, 1, Bytes(out)).Wait();
      world.group().Receive(other, 1, Bytes(in)).Wait();
      if (world.rank() == 1) world.group().Send(other, 1, Bytes(out)).Wait();
    }
    EXPECT_GT(watch.seconds(), 5 * 0.02);
    Link& link = world.LinkTo(other);
    const Stopwatch again;
    Barrier(world.group(), 0);
    Message message;
    for (int round = 0; round < 3; ++round) {
      if (world.rank() == 0) link.Send({.ints = {round}, .body = std::vector<float>(1000)});
      EXPECT_EQ(link.Receive(message, After(kSoon)), Arrival::kMessage);
      if (world.rank() == 1) link.Send(message);
    }
    EXPECT_EQ(message.ints, std::vector<int64_t>{2});
    EXPECT_GT(again.seconds(), 5 * 0.02);
  };
  auto zero = Start(setup, 0, talk), one = Start(setup, 1, talk);
  EXPECT_EQ(zero.get(), "");
  EXPECT_EQ(one.get(), "");
}

// Messages of a stream, each with the time when it was sent. One after another those of the second
// half would take minutes.
TEST(TcpTraffic, WhatIsSentWhileMoreIsOnItsWayIsAsLate) {
  constexpr double kLatency_s = 0.2;
  constexpr int kSpread = 16, kAtOnce = 2000;
  TcpSetup setup = Meet(2, 3600);  // longer than this test may take
  setup.latency_s = kLatency_s;
  const auto send = [&](auto&& one) {
    for (int i = 0; i < kSpread + kAtOnce; ++i) {
      one(Now());
      if (i < kSpread) std::this_thread::sleep_for(std::chrono::duration<double>(kLatency_s / 8));
    }
  };
  const auto receive = [&](auto&& one) {
    for (int i = 0; i < kSpread + kAtOnce; ++i) {
      const double sent = one();
      ASSERT_GE(Now() - sent, kLatency_s) << i;
    }
  };
  auto zero = Start(setup, 0, [&](World& world) {
    send([&](double now) { world.group().Send(1, 1, std::as_bytes(std::span(&now, 1))).Wait(); });
    world.LinkTo(1).Send({.ints = {0}});
    Barrier(world.group(), 0);  // it is connected
    send([&](double now) { world.LinkTo(1).Send({.ints = {std::bit_cast<int64_t>(now)}}); });
    Barrier(world.group(), 0);
  });
  auto one = Start(setup, 1, [&](World& world) {
    receive([&] {
      double sent = 0;
      world.group().Receive(0, 1, std::as_writable_bytes(std::span(&sent, 1))).Wait();
      return sent;
    });
    Message message;
    const auto next = [&] {
      EXPECT_EQ(world.LinkTo(0).Receive(message, After(kSoon)), Arrival::kMessage);
    };
    next();
    Barrier(world.group(), 0);
    receive([&] {
      next();
      return std::bit_cast<double>(message.ints.at(0));
    });
    Barrier(world.group(), 0);
  });
  EXPECT_EQ(zero.get(), "");
  EXPECT_EQ(one.get(), "");
}

TEST(TcpTraffic, AnAbortInTheMiddleOfLongMessagesReachesAll) {
  for (int round = 0; round < 10; ++round) {
    const TcpSetup setup = Meet(3, kSoon);
    const auto talk = [&](World& world) {
      Group& group = world.group();
      const int next = (world.rank() + 1) % 3, before = (world.rank() + 2) % 3;
      for (int i = 0;; ++i) {
        std::vector<char> out(3'000'000), in(out.size());
        Ticket arriving = group.Receive(before, 1, Bytes(in)),
               leaving = group.Send(next, 1, Bytes(out));
        if (world.rank() == 1 && i == round) group.Abort("enough");
        arriving.Wait();
        leaving.Wait();
      }
    };
    auto zero = Start(setup, 0, talk), one = Start(setup, 1, talk), two = Start(setup, 2, talk);
    EXPECT_EQ(zero.get(), "rank 0 of 3: rank 1 is lost: enough");
    EXPECT_EQ(one.get(), "rank 1 of 3: rank 1 is lost: enough");
    EXPECT_EQ(two.get(), "rank 2 of 3: rank 1 is lost: enough");
  }
}

}  // namespace
}  // namespace trireme
