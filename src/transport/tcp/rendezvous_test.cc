#include "transport/tcp/rendezvous.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/random.h"
#include "transport/collective/broadcast.h"
#include "transport/tcp/endpoint.h"
#include "transport/tcp/frame.h"
#include "transport/tcp/testing.h"

namespace trireme {
namespace {

constexpr double kSoon = 60;  // a busy machine must not make a test fail

TEST(TcpRendezvous, MissingRanksAreNamedOnBothSides) {
  // Where a busy machine does not let rank 2 report in time: with more of it.
  for (double join_s = 0.5;; join_s *= 2) {
    const TcpSetup setup = Meet(4, join_s);
    auto zero = Start(setup, 0), two = Start(setup, 2);
    const std::string at_zero = zero.get(), at_two = two.get();
    if (Has(at_zero, "ranks 1, 2, 3 are missing") && join_s < 60) continue;
    EXPECT_TRUE(Has(at_zero, "rank 0 of 4: ranks 1, 3 are missing")) << at_zero;
    EXPECT_TRUE(Has(at_zero, "transport.join_s")) << at_zero;
    EXPECT_TRUE(Has(at_two, "rank 2 of 4: ranks 1, 3 are missing")) << at_two;
    return;
  }
}

TEST(TcpRendezvous, ARankThatFindsNobodySaysWhere) {
  TcpSetup setup = Meet(2, 0.3);
  close(setup.listener);
  const std::string what = Start(setup, 1).get();
  EXPECT_TRUE(Has(what, "rank 1 of 2: cannot reach rank 0 at " + setup.meet)) << what;
}

TEST(TcpRendezvous, AnotherWorldSizeIsRefusedAtOnceOnBothSides) {
  const TcpSetup setup = Meet(2, 3600);  // longer than this test may take
  TcpSetup other = setup;
  other.size = 3;
  auto zero = Start(setup, 0), one = Start(other, 1);
  const std::string words = "rank 1 was started in a world of 3, rank 0 in a world of 2";
  const std::string at_zero = zero.get(), at_one = one.get();
  EXPECT_TRUE(Has(at_zero, words)) << at_zero;
  EXPECT_TRUE(Has(at_one, words)) << at_one;
}

TEST(TcpRendezvous, ARankThatWasStartedTwiceIsRefused) {
  const TcpSetup setup = Meet(3, kSoon);
  auto zero = Start(setup, 0), one = Start(setup, 1), again = Start(setup, 1);
  for (auto* rank : {&zero, &one, &again}) {
    const std::string what = rank->get();
    EXPECT_TRUE(Has(what, "rank 1 of 3 was started twice")) << what;
  }
}

TEST(TcpRendezvous, ARankThatGoesBeforeAllHaveMetMayComeAgain) {
  const TcpSetup setup = Meet(3, kSoon);
  auto zero = Start(setup, 0);
  asio::io_context io;
  const auto comes_and_goes = [&]() -> asio::awaitable<void> {
    const Hello hello = {Purpose::kMeet, 3, 1, 0, 77};
    const std::string secret, report = "127.0.0.1 1 77 here";
    uint64_t found = 0;
    Socket socket = co_await DialName(setup.meet, hello, secret, &found);
    co_await WriteText(socket, report);
    socket.shutdown(Socket::shutdown_send);
    char nothing;
    std::error_code closed;  // rank 0 has seen it
    co_await socket.async_read_some(asio::buffer(&nothing, 1),
                                    asio::redirect_error(asio::use_awaitable, closed));
    EXPECT_EQ(closed, asio::error::eof);
  };
  asio::co_spawn(io, comes_and_goes(), asio::detached);
  io.run();
  auto one = Start(setup, 1), two = Start(setup, 2);
  for (auto* rank : {&zero, &one, &two}) EXPECT_EQ(rank->get(), "");
}

TEST(TcpRendezvous, WhoIsStoppedTellsThoseWhoHaveCome) {
  TcpSetup setup = Meet(3, kSoon), first = setup;
  std::atomic<bool> stop = false;
  std::promise<void> waits;
  first.stop = [&] { return stop.load(); };
  first.host_of_rank = {"n1", "n1", "n2"};
  first.say = [&](const std::string& words) {
    EXPECT_EQ(words, "waiting at " + setup.meet +
                         " for ranks 1 (n1), 2 (n2), at most 60 s (transport.join_s)");
    waits.set_value();
  };
  auto zero = Start(first, 0);
  waits.get_future().wait();
  std::promise<void> reported;
  setup.say = [&](const std::string& words) {
    EXPECT_TRUE(Has(words, "rank 0 at " + setup.meet)) << words;
    reported.set_value();
  };
  auto one = Start(setup, 1);
  reported.get_future().wait();
  stop = true;
  const std::string at_zero = zero.get(), at_one = one.get();
  EXPECT_TRUE(Has(at_zero, "rank 0 of 3: stopped by a signal")) << at_zero;
  EXPECT_TRUE(Has(at_one, "rank 1 of 3: rank 0 was stopped by a signal")) << at_one;
}

TEST(TcpRendezvous, OnlyWhoKnowsTheSecretIsLetIn) {
  TcpSetup right = Meet(2, kSoon), wrong = right;
  right.secret = "open sesame";
  wrong.secret = "open barley";
  auto zero = Start(right, 0, [](World& world) { Barrier(world.group(), 0); });
  const std::string what = Start(wrong, 1).get();
  EXPECT_TRUE(Has(what, "rank 1 of 2: refused by rank 0")) << what;
  EXPECT_TRUE(Has(what, "secret")) << what;
  wrong.secret = "";
  EXPECT_TRUE(Has(Start(wrong, 1).get(), "secret"));
  auto one = Start(right, 1, [](World& world) { Barrier(world.group(), 0); });
  EXPECT_EQ(one.get(), "");  // the job was not disturbed
  EXPECT_EQ(zero.get(), "");
}

TEST(TcpRendezvous, WrongAddressesAreExplained) {
  TcpSetup setup{.rank = 1, .size = 2, .meet = "nowhere", .join_s = 1};
  EXPECT_THROW(JoinTcp(setup), UsageError);
  setup.meet = "10.1.2.3:1234";
  EXPECT_TRUE(Has(WhatOf([&] { JoinTcp(setup); }), "needs a secret"));
  setup.bind = "this host";
  EXPECT_THROW(JoinTcp(setup), UsageError);
}

// ---- strangers

int ConnectTo(const std::string& meet) {
  asio::io_context io;
  Socket socket(io);
  socket.connect(EndpointOf(meet));
  return socket.release();
}

TEST(TcpStrangers, DoNotDisturbAndAreSentAway) {
  const TcpSetup setup = Meet(2, kSoon);
  std::vector<int> silent;
  for (int i = 0; i < 60; ++i) silent.push_back(ConnectTo(setup.meet));  // say nothing
  const int slow = ConnectTo(setup.meet);
  auto talk = [&](World& world) {
    const Random random(4);
    for (int round = 0; round < 30; ++round) {
      if (world.rank() == 1) {  // bytes of all kinds, some with the right beginning
        const int fd = ConnectTo(setup.meet);
        std::vector<char> bytes(200);
        for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = char(random.Bits(round * 1000 + i));
        if (round % 2) std::memcpy(bytes.data(), "trireme\n", 8);
        send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (round % 3) close(fd);
      }
      Barrier(world.group(), 0);
    }
    // A slow one gets a letter through each second, and no more than a few seconds.
    if (world.rank() == 1) {
      char letter = 't';
      for (;;) {  // for ever, and the test fails, if it may stay
        send(slow, &letter, 1, MSG_NOSIGNAL);
        if (recv(slow, &letter, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
      }
    }
    Barrier(world.group(), 0);
  };
  auto zero = Start(setup, 0, talk), one = Start(setup, 1, talk);
  EXPECT_EQ(zero.get(), "");
  EXPECT_EQ(one.get(), "");
  for (const int fd : silent) {  // all were sent away
    char c;
    errno = 0;
    EXPECT_LE(recv(fd, &c, 1, MSG_DONTWAIT), 0);
    EXPECT_NE(errno, EAGAIN);
    close(fd);
  }
  close(slow);
}

// A rank of the world that has lost its mind: it meets as it should, and then says `bytes`.
std::string AfterGarbage(const std::vector<char>& bytes) {
  const TcpSetup setup = Meet(2, kSoon);
  auto zero = Start(setup, 0, [](World& world) {
    std::vector<char> v(10);
    world.group().Receive(1, 0, Bytes(v)).Wait();
  });
  asio::io_context io;
  const auto mad = [&]() -> asio::awaitable<void> {
    const Hello hello = {Purpose::kMeet, 2, 1, 0, 77};
    uint64_t found = 0;
    const std::string secret, report = "127.0.0.1 1 77 here";
    Socket socket = co_await DialName(setup.meet, hello, secret, &found);
    co_await WriteText(socket, report);
    co_await ReadText(socket, 1000);
    const auto buffer = asio::buffer(bytes);
    co_await asio::async_write(socket, buffer, asio::use_awaitable);
    zero.wait();
  };
  asio::co_spawn(io, mad(), asio::detached);
  io.run();
  return zero.get();
}

TEST(TcpStrangers, AKnownRankThatSendsGarbageIsNamed) {
  const std::string words = "rank 0 of 2: rank 1 is lost: it sent an invalid frame";
  EXPECT_TRUE(Has(AfterGarbage(std::vector<char>(100, 'x')), words));
  const auto frame = [](const Frame& f) {
    const FrameBytes bytes = Encode(f);
    return std::vector<char>(reinterpret_cast<const char*>(bytes.data()),
                             reinterpret_cast<const char*>(bytes.data()) + bytes.size());
  };
  EXPECT_TRUE(Has(AfterGarbage(frame({FrameKind::kEager, 0, 0, ~uint64_t{0}})), words));
  EXPECT_TRUE(Has(AfterGarbage(frame({FrameKind::kData, 0, 0, 10, 0})), words));
  EXPECT_TRUE(Has(AfterGarbage(frame({FrameKind::kEager, -5, 0, 10})), words));
  EXPECT_TRUE(Has(AfterGarbage(frame({FrameKind::kAbort, 9, 0, 0})), words));
}

}  // namespace
}  // namespace trireme
