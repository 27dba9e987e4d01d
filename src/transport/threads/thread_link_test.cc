#include "transport/threads/thread_link.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"

namespace trireme {
namespace {

Message Numbered(int kind) { return {.kind = kind}; }

// The kinds of all that arrives within the time; other arrivals as their negative.
std::vector<int> Drain(Link& link, double seconds) {
  std::vector<int> kinds;
  Message message;
  for (const Deadline end = After(seconds);;) {
    const Arrival arrival = link.Receive(message, end);
    if (arrival == Arrival::kNothing) return kinds;
    kinds.push_back(arrival == Arrival::kMessage ? message.kind : -int(arrival));
  }
}
constexpr int kGone = -int(Arrival::kGone), kBack = -int(Arrival::kBack),
              kRenewed = -int(Arrival::kRenewed);
constexpr double kLong = 3600;  // longer than a test may take

TEST(ThreadLink, DeliversInOrderBothWaysAndOffersOnlyTheNewest) {
  ThreadLink wire(10, 10);
  for (int i = 1; i <= 3; ++i) {
    wire.server().Offer(Numbered(10 * i));
    wire.server().Send(Numbered(i));
    wire.client().Send(Numbered(100 * i));
  }
  EXPECT_EQ(Drain(wire.client(), 0), (std::vector{1, 2, 3, 30}));
  EXPECT_EQ(Drain(wire.server(), 0), (std::vector{100, 200, 300}));
}

TEST(ThreadLink, ACutDelaysMessagesAndLosesOffers) {
  ThreadLink wire(10, kLong);
  wire.client().Send(Numbered(1));
  wire.client().Offer(Numbered(8));
  wire.Cut(kLong);
  wire.client().Send(Numbered(2));
  wire.client().Offer(Numbered(9));
  EXPECT_EQ(Drain(wire.server(), 0.01), std::vector<int>{});
  wire.Cut(0);  // it heals
  EXPECT_EQ(Drain(wire.server(), 0), (std::vector{1, 2}));
}

TEST(ThreadLink, ACutHealsByItself) {
  ThreadLink wire(10, kLong);
  wire.Cut(0.05);
  wire.client().Send(Numbered(1));
  Message message;
  EXPECT_EQ(wire.server().Receive(message, After(kLong)), Arrival::kMessage);
}

TEST(ThreadLink, ALongCutMakesTheOtherEndGoneAndBack) {
  ThreadLink wire(10, 0.02);
  wire.Cut(kLong);
  wire.client().Send(Numbered(1));
  Message message;
  EXPECT_EQ(wire.server().Receive(message, After(kLong)), Arrival::kGone);
  EXPECT_EQ(Drain(wire.server(), 0.01), std::vector<int>{});  // told once
  wire.Cut(0);
  EXPECT_EQ(Drain(wire.server(), 0), (std::vector{kBack, 1}));
  EXPECT_EQ(Drain(wire.client(), 0), std::vector<int>{});  // looked only after it had healed
}

TEST(ThreadLink, AClosedEndIsGoneAfterItsLastMessage) {
  ThreadLink wire(10, 10);
  wire.client().Send(Numbered(1));
  wire.client().Close();
  EXPECT_EQ(Drain(wire.server(), 0), (std::vector{1, kGone}));
  EXPECT_EQ(Drain(wire.server(), 0), std::vector<int>{});
}

TEST(ThreadLink, AfterARestartOfTheServerNothingOldArrives) {
  ThreadLink wire(10, 10);
  wire.server().Send(Numbered(1));
  wire.client().Send(Numbered(2));
  wire.Renew();
  wire.server().Send(Numbered(3));
  EXPECT_EQ(Drain(wire.client(), 0), (std::vector{kRenewed, 3}));
  EXPECT_EQ(Drain(wire.server(), 0), std::vector<int>{});
}

TEST(ThreadLink, AbortWakesAWaitingReceive) {
  ThreadLink wire(10, 10);
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    wire.Abort("rank 3 is lost");
  });
  Message message;
  EXPECT_THROW(wire.client().Receive(message, After(kLong)), PeerLost);
}

TEST(ThreadLink, TheBellRingsForEachLink) {
  ThreadLink a(10, 10), b(10, 10);
  WakeEvent wake;
  a.server().SetWakeEvent(&wake);
  b.server().SetWakeEvent(&wake);
  wake.Wait(After(0));
  std::jthread other([&] { b.client().Send(Numbered(1)); });
  wake.Wait(After(kLong));
  EXPECT_EQ(Drain(b.server(), 0), std::vector<int>{1});
}

}  // namespace
}  // namespace trireme
