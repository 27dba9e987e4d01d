// What the server makes of a client's words, true and false ones, over a wire.
#include "strategy/server/parameter_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "base/error.h"
#include "strategy/check/counted_once.h"
#include "strategy/exchange/client.h"
#include "strategy/server/protocol.h"
#include "transport/memory/box.h"
#include "transport/threads/thread_link.h"

namespace trireme {
namespace {

constexpr double kSoon = 60;  // a busy machine must not make a test fail

ParameterServer::Setup OneClient(ThreadLink& wire) {
  return {.clients = {&wire.server()},
          .plan = {.samples = 100, .batch = 10, .shards = 1, .steps = 10},
          .positions = 100,
          .rule = [](Device&) { return MakeAddRule(); }};
}

TEST(CentreServerTest, RefusesWhatDoesNotBelong) {
  ThreadLink wire(10, 10);
  ParameterServer::Setup setup = OneClient(wire);
  setup.lease = 10;
  const std::vector<float> start(32, 1.0f);
  ParameterServer server(std::move(setup), start);
  std::jthread thread([&] { server.Run(nullptr); });

  Link& link = wire.client();
  const auto lease = [&] {
    link.Send({.kind = kAsk, .ints = {0}});
    Message message;
    EXPECT_EQ(link.Receive(message, After(kSoon)), Arrival::kMessage);
    EXPECT_EQ(message.kind, kGrant);
    EXPECT_EQ(message.ints.size(), 4u);  // one at a time unless more are wanted
    return message.ints.at(1);
  };
  const auto refused = [&](Message message) {
    link.Send(std::move(message));
    link.Send({.kind = kFetch, .ints = {7}});
    Message answer;
    bool was = false;
    do {
      if (link.Receive(answer, After(kSoon)) != Arrival::kMessage) ADD_FAILURE() << "no answer";
      was |= answer.kind == kRefused;
    } while (answer.kind != kCentre && !testing::Test::HasFailure());
    return was;
  };
  const std::vector<float> good(32, 0.5f);
  std::vector<float> nan = good;
  nan[31] = NAN;
  EXPECT_TRUE(refused({.kind = kPush, .ints = {0, 0, 0, 0, 0, lease() + 1}, .body = good}));
  EXPECT_TRUE(refused({.kind = kPush, .ints = {0, 0, 0, 0, 0, lease()}, .body = nan}));
  EXPECT_TRUE(
      refused({.kind = kPush, .ints = {0, 0, 0, 0, 0, lease()}, .body = std::vector<float>(31)}));
  EXPECT_TRUE(
      refused({.kind = kPush, .ints = {1, 0, 0, 0, 0, lease()}, .body = good}));  // of the future
  EXPECT_TRUE(refused({.kind = kPush, .ints = {-1, 0, 0, 0, 0, lease()}, .body = good}));
  EXPECT_TRUE(refused({.kind = kPush, .ints = {0, 0, 0, 0, 0}, .body = good}));
  EXPECT_TRUE(refused({.kind = kPush, .ints = {}, .body = good}));
  const int64_t id = lease();
  EXPECT_TRUE(refused({.kind = kPush, .ints = {0, 0, 0, 0, 0, id, id}, .body = good}));
  EXPECT_TRUE(refused(
      {.kind = kPush, .ints = {0, 0, 0, 0, 0, id}, .body = good}));  // void since the refusal
  EXPECT_TRUE(refused({.kind = 77}));
  EXPECT_TRUE(refused({.kind = -1}));
  EXPECT_FALSE(refused({.kind = kPush, .ints = {0, 0, 0, 0, 0, lease()}, .body = good}));
  link.Send({.kind = kBye});
  thread.join();
  EXPECT_EQ(server.version(), 1);
  EXPECT_EQ(server.refused(), 11);
  EXPECT_EQ(server.leases().closed_positions(), 10);
  EXPECT_EQ(server.leases().open(), 0);
  for (float value : server.centre()) EXPECT_EQ(value, 1.5f);
}

// One that was let in and says anything: half true, out of turn, of another shape. The centre stays
// finite, no position counts twice, and another one's words count.
TEST(CentreServerTest, StandsAClientThatSaysAnything) {
  for (const auto stale : {ParameterServer::Stale::kTake, ParameterServer::Stale::kWait}) {
    ThreadLink wire(10, 10), honest(10, 10);
    ParameterServer::Setup setup = OneClient(wire);
    setup.clients.push_back(&honest.server());
    setup.plan.steps = 1000;
    setup.positions = PositionsOf(setup.plan);
    setup.lease = 3;
    setup.staleness = 1;
    setup.stale = stale;
    CountedOnce counter(setup.plan);
    ParameterServer server(std::move(setup), std::vector<float>(32, 1.0f));
    server.OnClose([&](const Lease& lease) { counter.Close(lease); });
    std::jthread thread([&] { server.Run(nullptr); });
    std::mt19937 random(5);
    std::vector<int64_t> numbers = {0, 1, -1, INT64_MIN, INT64_MAX};  // and what it was told
    const auto any = [&] { return numbers[random() % numbers.size()]; };
    for (int i = 0; i < 3000; ++i) {
      Message message{.kind = int(random() % 8) - 1};
      if (random() % 2) message.kind = kPush;
      if (random() % 4 == 0) message.kind = kAsk;
      if (message.kind == kBye) continue;
      for (unsigned n = random() % 7; n > 0; --n) message.ints.push_back(any());
      if (message.kind == kPush && message.ints.size() > 4) {
        message.ints[1] = message.ints[2] = message.ints[3] = BitsOf(1.0);
        message.ints[4] = 0;
      }
      const float value = random() % 40 ? 0.001f : NAN;
      message.body.assign(random() % 4 ? 32 : random() % 64, value);
      wire.client().Send(std::move(message));
      Message answer;
      while (wire.client().Receive(answer, After(i % 20 ? 0 : 0.002)) == Arrival::kMessage) {
        numbers.insert(numbers.end(), answer.ints.begin(), answer.ints.end());
        if (numbers.size() > 12) numbers.erase(numbers.begin() + 5, numbers.end() - 7);
      }
    }
    wire.client().Send({.kind = 77});
    wire.client().Send({.kind = kBye});
    // And then the truth, which counts.
    Message answer;
    const auto hear = [&](int kind) {
      do {
        ASSERT_EQ(honest.client().Receive(answer, After(kSoon)), Arrival::kMessage);
      } while (answer.kind != kind);
    };
    honest.client().Send({.kind = kAsk, .ints = {0}});
    ASSERT_NO_FATAL_FAILURE(hear(kGrant));
    const int64_t id = answer.ints.at(1);
    honest.client().Send({.kind = kFetch, .ints = {7, 1}});  // read after all that was said before
    ASSERT_NO_FATAL_FAILURE(hear(kCentre));
    const int64_t version = answer.ints.at(0);
    honest.client().Send({.kind = kPush,
                          .ints = {version, BitsOf(1.0), BitsOf(1.0), BitsOf(0.0), 0, id},
                          .body = std::vector<float>(32, 0.5f)});
    honest.client().Send({.kind = kBye});
    thread.join();
    EXPECT_GT(server.refused(), 100);
    EXPECT_EQ(server.version(), version + 1);
    for (const auto& [position, times] : counter.counted()) ASSERT_EQ(times, 1) << position;
    EXPECT_EQ(int64_t(counter.counted().size()), server.leases().closed_positions());
    EXPECT_EQ(server.leases().open(), 0);
    for (const float value : server.centre()) ASSERT_TRUE(std::isfinite(value));
  }
}

TEST(CentreServerTest, BoundsStaleness) {
  for (const auto stale : {ParameterServer::Stale::kTake, ParameterServer::Stale::kScale,
                           ParameterServer::Stale::kDrop}) {
    ThreadLink wire(10, 10);
    ParameterServer::Setup setup = OneClient(wire);
    setup.lease = 10;
    setup.staleness = 1;
    setup.stale = stale;
    const std::vector<float> start(32, 0.0f), one(32, 1.0f);
    ParameterServer server(std::move(setup), start);
    std::jthread thread([&] { server.Run(nullptr); });
    Link& link = wire.client();
    for (int i = 0; i < 4; ++i) {  // all from version 0: 0, 1, 2, 3 behind
      link.Send({.kind = kAsk, .ints = {0}});
      Message message;
      do {
        ASSERT_EQ(link.Receive(message, After(kSoon)), Arrival::kMessage);
      } while (message.kind != kGrant);
      link.Send({.kind = kPush, .ints = {0, 0, 0, 0, 0, message.ints.at(1)}, .body = one});
    }
    link.Send({.kind = kBye});
    thread.join();
    const bool drops = stale == ParameterServer::Stale::kDrop;
    EXPECT_EQ(server.refused(), drops ? 2 : 0);
    EXPECT_EQ(server.leases().closed_positions(), drops ? 20 : 40);
    EXPECT_EQ(server.leases().open(), 0);
    const float centre = drops                                    ? 2
                         : stale == ParameterServer::Stale::kTake ? 4
                                                                  : 2 + 2 / 3.f + 0.5f;
    EXPECT_NEAR(server.centre()[0], centre, 1e-6);
    const Staleness seen = server.staleness();
    EXPECT_EQ(seen.most(), drops ? 1 : 3);
    EXPECT_NEAR(seen.mean(), drops ? 0.5 : 1.5, 1e-9);
  }
}

// Two clients of one lease: the first has it, the second asks for one and is given up meanwhile.
class AwayTest : public testing::Test, private ServerKeeper {
 protected:
  // The server's end of the second, as long after the other end was heard as the test says.
  struct OverdueLink : Link {
    explicit OverdueLink(Link& end) : link(end) {}
    void Send(Message message) override { link.Send(std::move(message)); }
    void Offer(Message message) override { link.Offer(std::move(message)); }
    Arrival Receive(Message& message, Deadline deadline) override {
      return link.Receive(message, deadline);
    }
    void Close() noexcept override { link.Close(); }
    void SetWakeEvent(WakeEvent* wake) override { link.SetWakeEvent(wake); }
    double timeout_s() const override { return link.timeout_s(); }
    double overdue_s() const override { return silent_s; }
    Link& link;
    std::atomic<double> silent_s = 0;
  };

  // Not in the constructor: the server calls virtual functions of the whole test.
  void SetUp() override {
    ParameterServer::Setup setup = OneClient(first_);
    setup.clients.push_back(&end_);
    setup.lease = 100;  // all there is
    server_.emplace(std::move(setup), std::vector<float>(32, 1.0f));
    thread_ = std::jthread([this] { server_->Run(this); });
  }
  void TearDown() override {
    for (ThreadLink* wire : {&first_, &second_}) wire->client().Send({.kind = kBye});
    thread_.join();
  }

  void Ask() {
    Message message;
    first_.client().Send({.kind = kAsk, .ints = {0}});
    ASSERT_EQ(first_.client().Receive(message, After(kSoon)), Arrival::kMessage);
    ASSERT_EQ(message.kind, kGrant);
    second_.client().Send({.kind = kAsk, .ints = {0}});
    second_.client().Send(
        {.kind = kFetch, .ints = {0}});  // answered: the server has read the first
    do {
      ASSERT_EQ(second_.client().Receive(message, After(kSoon)), Arrival::kMessage);
    } while (message.kind == kWait);  // late: it was encouraged meanwhile
    ASSERT_EQ(message.kind, kCentre);
  }
  void AwaitAway() {
    const auto deadline = After(kSoon);
    while (second_is_here_ && After(0) < deadline) std::this_thread::yield();
    ASSERT_FALSE(second_is_here_);
  }
  void ExpectGrant() {
    first_.client().Send({.kind = kLeave});
    Message message;
    do {
      const Arrival arrival = second_.client().Receive(message, After(kSoon));
      ASSERT_NE(arrival, Arrival::kNothing) << "the server has forgotten what it was asked";
      if (arrival != Arrival::kMessage) message = {};
    } while (message.kind != kGrant);
  }

  ThreadLink first_{10, 10}, second_{10, 0.01};
  OverdueLink end_{second_.server()};

 private:
  bool Stop() override { return false; }
  void EpochEnded(const Server&) override {}
  void Look(const Server& server) override { second_is_here_ = server.clients()[1].here; }
  std::atomic<bool> second_is_here_ = true;
  std::optional<ParameterServer> server_;
  std::jthread thread_;
};

// A client asks once. If it is back, in the same life, it still waits.
TEST_F(AwayTest, WhatAClientAskedBeforeItWasCutOffIsAnswered) {
  ASSERT_NO_FATAL_FAILURE(Ask());
  second_.Cut(1000);
  ASSERT_NO_FATAL_FAILURE(AwaitAway());
  second_.Cut(0);  // it is mended
  ExpectGrant();
}

// Silence that is too long, and ends before the link gives the other end up.
TEST_F(AwayTest, WhatAClientAskedBeforeItWasSilentIsAnswered) {
  ASSERT_NO_FATAL_FAILURE(Ask());
  end_.silent_s = 5;
  ASSERT_NO_FATAL_FAILURE(AwaitAway());
  end_.silent_s = 0;
  ExpectGrant();
}

// A worker whose group has all leases, and waits for it before it begins with them.
TEST(CentreServerTest, AWorkerKnowsThatTheServerHasBegunWhereNothingIsLeftToLease) {
  ThreadLink first(10, 10), second(10, 10);
  MemoryBox box{MemoryBoxSetup{}};
  const std::unique_ptr<Memory> memory = box.Connect();
  ParameterServer::Setup setup = OneClient(first);
  setup.clients.push_back(&second.server());
  setup.lease = 100;  // all there is
  setup.memory = memory.get();
  ParameterServer server(std::move(setup), std::vector<float>(32, 1.0f));
  std::jthread thread([&] { server.Run(nullptr); });
  first.client().Send({.kind = kAsk, .ints = {0}});
  Message message;
  ASSERT_EQ(first.client().Receive(message, After(kSoon)), Arrival::kMessage);
  ASSERT_EQ(message.kind, kGrant);
  {
    ServerLine line({{.link = &second.client()}});
    LeaseClient leases(line, {});
    line.Listen({&leases});
    leases.AwaitServer();
    first.client().Send({.kind = kLeave});  // and what it drops is for the other
    Lease lease;
    EXPECT_EQ(leases.Claim(false, lease), LeaseClient::Answer::kLease);
    EXPECT_EQ(lease.end - lease.begin, 100);
    line.Close();
  }
  first.client().Send({.kind = kBye});
}

// The server's end of a link on which nothing that is offered gets through.
struct SlowLink : Link {
  explicit SlowLink(Link& end) : link(end) {}
  void Send(Message message) override { link.Send(std::move(message)); }
  void Offer(Message message) override {
    const std::lock_guard lock(mutex);
    offered = message.kind;
    ++offers;
    changed.notify_all();
  }
  Arrival Receive(Message& message, Deadline deadline) override {
    return link.Receive(message, deadline);
  }
  void Close() noexcept override { link.Close(); }
  void SetWakeEvent(WakeEvent* wake) override { link.SetWakeEvent(wake); }
  double timeout_s() const override { return link.timeout_s(); }
  // What waits in the link after so many offers.
  int AwaitOffers(int count) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::duration<double>(kSoon), [&] { return offers >= count; });
    return offers >= count ? offered : -1;
  }
  Link& link;
  std::mutex mutex;
  std::condition_variable changed;
  int offered = -1, offers = 0;
};

// It asks for a lease that another one holds, and its link is busy: what it is told meanwhile is
// the newest centre, not words that take its place.
TEST(CentreServerTest, AClientThatWaitsKeepsTheBroadcastThatIsOnItsWay) {
  ThreadLink first(0.2, 10), second(0.2, 10);
  SlowLink end(second.server());
  ParameterServer::Setup setup = OneClient(first);
  setup.clients.push_back(&end);
  setup.lease = 100;  // all there is
  setup.broadcasts = true;
  ParameterServer server(std::move(setup), std::vector<float>(32, 1.0f));
  std::jthread thread([&] { server.Run(nullptr); });
  Message message;
  first.client().Send({.kind = kAsk, .ints = {0}});
  do {
    ASSERT_EQ(first.client().Receive(message, After(kSoon)), Arrival::kMessage);
  } while (message.kind != kGrant);
  second.client().Send({.kind = kAsk, .ints = {0}});
  for (const int offers : {1, 2, 3}) EXPECT_EQ(end.AwaitOffers(offers), kNews);
  for (ThreadLink* wire : {&first, &second}) wire->client().Send({.kind = kBye});
}

TEST(CentreServerTest, EndsARunWhoseWorkersOnlyDiverge) {
  ThreadLink wire(10, 10);
  ParameterServer::Setup setup = OneClient(wire);
  const std::vector<float> start(32, 1.0f);
  ParameterServer server(std::move(setup), start);
  std::jthread client([&] {
    Link& link = wire.client();
    Message message;
    for (int i = 0; i < 1000; ++i) {
      link.Send({.kind = kAsk, .ints = {0}});
      while (link.Receive(message, After(kSoon)) == Arrival::kMessage && message.kind == kRefused) {
      }
      if (message.kind != kGrant) return;
      const std::vector<float> inf(32, INFINITY);
      link.Send({.kind = kPush, .ints = {0, 0, 0, 0, 0, message.ints.at(1)}, .body = inf});
      message = {};
    }
  });
  try {
    server.Run(nullptr);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("optimizer.lr"), std::string::npos) << error.what();
  }
}

// Whoever keeps the run still saves earlier ones: the next epoch begins later, and the server is
// not silent.
TEST(CentreServerTest, ServesOnWhileTheEndOfAnEpochHasToWait) {
  struct Keeper : ServerKeeper {
    void EpochEnded(const Server&) override { EXPECT_FALSE(busy); }
    bool Busy() override { return busy; }
    void Look(const Server&) override {}
    bool Stop() override { return false; }
    std::atomic<bool> busy = true;
  } keeper;
  ThreadLink wire(1, 10);
  ParameterServer::Setup setup = OneClient(wire);
  setup.positions = 200;  // two epochs
  setup.lease = 100;
  ParameterServer server(std::move(setup), std::vector<float>(32, 1.0f));
  std::jthread thread([&] { server.Run(&keeper); });
  Link& link = wire.client();
  Message message;
  const auto hear = [&] {
    do {
      ASSERT_EQ(link.Receive(message, After(kSoon)), Arrival::kMessage);
    } while (message.kind != kGrant && message.kind != kWait);
  };
  const auto push = [&] {
    ASSERT_EQ(message.kind, kGrant);
    link.Send({.kind = kPush,
               .ints = {0, 0, 0, 0, 0, message.ints.at(1)},
               .body = std::vector<float>(32, 0.5f)});
  };
  link.Send({.kind = kAsk, .ints = {0}});
  hear();
  push();
  link.Send({.kind = kAsk, .ints = {0}});
  hear();
  EXPECT_EQ(message.kind, kWait);
  keeper.busy = false;
  while (message.kind == kWait && !testing::Test::HasFailure()) hear();
  push();
  link.Send({.kind = kBye});
  thread.join();
  EXPECT_EQ(server.leases().closed_positions(), 200);
}

TEST(CentreServerTest, WithoutClientsItGivesUpAndSaysSo) {
  ThreadLink wire(0.1, 10);
  ParameterServer::Setup setup = OneClient(wire);
  const std::vector<float> start(32, 1.0f);
  ParameterServer server(std::move(setup), start);
  wire.client().Close();
  EXPECT_THROW(server.Run(nullptr), PeerLost);
}

TEST(ClientTest, GivesUpASilentServerAfterTheDeadline) {
  ThreadLink wire(0.05, 10);
  Client client(wire.client());
  EXPECT_THROW(client.centre().Fetch(32), PeerLost);
  Lease lease;
  EXPECT_THROW(client.leases().Claim(false, lease), PeerLost);
}

}  // namespace
}  // namespace trireme