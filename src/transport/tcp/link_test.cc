#include "transport/tcp/link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/random.h"

namespace trireme {
namespace {

constexpr double kSoon = 60;  // a busy machine must not make a test fail

// Two ends, and connections between them that a test makes and cuts.
class Ends {
 public:
  explicit Ends(double timeout_s)
      : client(io_, timeout_s, limiter_, limiter_), server(io_, timeout_s, limiter_, limiter_) {
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Ends() {
    io_.stop();
    thread_.join();
    close(cut_);
  }

  void Connect(uint64_t client_incarnation = 1, uint64_t server_incarnation = 2) {
    using asio::ip::tcp;
    tcp::acceptor acceptor(io_, {asio::ip::address_v4::loopback(), 0});
    Socket a(io_);
    a.connect(acceptor.local_endpoint());
    Socket b = acceptor.accept();
    close(cut_);
    cut_ = dup(a.native_handle());
    asio::co_spawn(io_, client.Carry(std::move(a), server_incarnation), asio::detached);
    asio::co_spawn(io_, server.Carry(std::move(b), client_incarnation), asio::detached);
  }
  void Carry(TcpLink& link, int fd) {  // a connection with a stranger
    asio::post(io_, [this, &link, fd] {
      Socket socket(io_, asio::ip::tcp::v4(), fd);
      asio::co_spawn(io_, link.Carry(std::move(socket), 3), asio::detached);
    });
  }
  void Cut() { shutdown(cut_, SHUT_RDWR); }

 private:
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  RateLimiter limiter_{0};
  int cut_ = -1;

 public:
  TcpLink client, server;

 private:
  std::thread thread_;
};

constexpr int kGone = -int(Arrival::kGone), kBack = -int(Arrival::kBack),
              kRenewed = -int(Arrival::kRenewed);

// The kinds of `count` arrivals, and of what comes right behind them; other arrivals than messages
// as their negative.
std::vector<int> Next(Link& link, size_t count) {
  std::vector<int> kinds;
  Message message;
  for (;;) {
    const Arrival arrival = link.Receive(message, After(kinds.size() < count ? kSoon : 0.02));
    if (arrival == Arrival::kNothing) return kinds;
    kinds.push_back(arrival == Arrival::kMessage ? message.kind : -int(arrival));
  }
}

TEST(TcpLink, MessagesArriveOnceAndInOrderThroughManyCuts) {
  Ends ends(kSoon);
  ends.Connect();
  constexpr int kMessages = 3000;
  const Random random(5);
  std::jthread sender([&] {
    for (int i = 0; i < kMessages; ++i) {
      ends.client.Send({.kind = i, .body = std::vector<float>(random.Bits(i) % 5000, float(i))});
      if (i % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
  });
  // Each connection carries a few, however slow all are: else they might never get ahead.
  std::atomic<uint64_t> received = 0;
  std::jthread scissors([&](const std::stop_token& stop) {
    for (uint64_t cut = 0;; ++cut) {
      const uint64_t until = received + random.Bits(kMessages + cut) % 100;
      while (received < until && !stop.stop_requested()) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
      if (stop.stop_requested()) return;
      ends.Cut();
      ends.Connect();
    }
  });
  Message message;
  for (int i = 0; i < kMessages; ++i, ++received) {
    ASSERT_EQ(ends.server.Receive(message, After(kSoon)), Arrival::kMessage);
    ASSERT_EQ(message.kind, i);
    for (const float x : message.body) ASSERT_EQ(x, float(i));
  }
  EXPECT_TRUE(ends.client.AwaitDelivery(After(kSoon)));
}

TEST(TcpLink, ALongCutMakesTheOtherEndGoneAndBack) {
  Ends ends(0.4);
  ends.Connect();
  ends.client.Send({.kind = 1});
  Message message;  // the first; a busy machine may have taken longer to connect
  while (ends.server.Receive(message, After(kSoon)) != Arrival::kMessage) {
  }
  EXPECT_EQ(message.kind, 1);
  ends.Cut();
  EXPECT_EQ(Next(ends.server, 1), std::vector{kGone});
  ends.client.Send({.kind = 2});
  EXPECT_FALSE(ends.client.AwaitDelivery(After(0.01)));
  ends.Connect();
  EXPECT_EQ(Next(ends.server, 2), (std::vector{kBack, 2}));
  EXPECT_TRUE(ends.client.AwaitDelivery(After(kSoon)));
}

TEST(TcpLink, AnotherIncarnationGetsNothingOld) {
  Ends ends(kSoon);
  ends.Connect(1, 2);
  ends.client.Send({.kind = 1});
  EXPECT_EQ(Next(ends.server, 1), std::vector{1});
  ends.Cut();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ends.client.Send({.kind = 2});  // for the old one
  // The server forgets as a new process would: both see another incarnation.
  ends.Connect(11, 12);
  EXPECT_EQ(Next(ends.client, 1), std::vector{kRenewed});
  EXPECT_EQ(Next(ends.server, 1), std::vector{kRenewed});
  ends.client.Send({.kind = 3});
  ends.server.Send({.kind = 4});
  EXPECT_EQ(Next(ends.server, 1), std::vector{3});
  EXPECT_EQ(Next(ends.client, 1), std::vector{4});
}

TEST(TcpLink, WhoComesAfterOneThatSaidGoodbyeIsSpokenTo) {
  Ends ends(kSoon);
  ends.Connect(1, 2);
  ends.client.Close();
  EXPECT_EQ(Next(ends.server, 1), std::vector{kGone});
  ends.Cut();
  const Deadline until = After(kSoon);
  while (ends.server.connected() && After(0) < until) std::this_thread::yield();
  ends.server.Send({.kind = 1});  // nobody takes it
  EXPECT_TRUE(ends.server.AwaitDelivery(After(0)));
  ends.Connect(11, 12);
  EXPECT_EQ(Next(ends.server, 1), std::vector{kRenewed});
  EXPECT_EQ(Next(ends.client, 1), std::vector{kRenewed});
  ends.server.Send({.kind = 2});
  EXPECT_EQ(Next(ends.client, 1), std::vector{2});
}

TEST(TcpLink, WhatWasSaidBeforeTheFirstConnectionArrives) {
  Ends ends(kSoon);
  ends.client.Offer({.kind = 8});
  ends.client.Send({.kind = 1});
  ends.client.Offer({.kind = 9});
  ends.client.Close();
  ends.Connect();
  EXPECT_TRUE(ends.client.AwaitDelivery(After(kSoon)));
  EXPECT_EQ(Next(ends.server, 3), (std::vector{1, 9, kGone}));
}

TEST(TcpLink, GarbageEndsAConnectionAndNothingElse) {
  Ends ends(kSoon);
  asio::io_context io;
  using asio::ip::tcp;
  const Random random(9);
  for (uint64_t round = 0; round < 20; ++round) {
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    Socket a(io);
    a.connect(acceptor.local_endpoint());
    Socket b = acceptor.accept();
    // First a resume that is right, so that garbage reaches the reader.
    std::vector<char> bytes(4096);
    const FrameBytes resume = Encode({FrameKind::kResume});
    std::memcpy(bytes.data(), resume.data(), resume.size());
    for (size_t i = kFrameBytes; i < bytes.size(); ++i)
      bytes[i] = char(random.Bits(round << 20 | i));
    Frame frame = {FrameKind::kMessage, 0, 1, 1 << 20, uint64_t{1} << 33};  // 32 GiB announced
    if (round % 3 == 0) frame.length = ~uint64_t{0};
    if (round % 3 == 1) frame = {FrameKind::kAck, 0, 5};
    const FrameBytes header = Encode(frame);
    if (round % 2) std::memcpy(bytes.data() + kFrameBytes, header.data(), header.size());
    ends.Carry(ends.server, a.release());
    asio::write(b, asio::buffer(bytes));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ends.Connect(7, 8);
  ends.client.Send({.kind = 1});
  EXPECT_EQ(Next(ends.server, 2), (std::vector{kRenewed, 1}));
}

TEST(TcpLink, AbortWakesAWaitingReceive) {
  Ends ends(kSoon);
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ends.client.Abort("rank 3 is lost");
  });
  Message message;
  EXPECT_THROW(ends.client.Receive(message, After(kSoon)), PeerLost);
}

}  // namespace
}  // namespace trireme
