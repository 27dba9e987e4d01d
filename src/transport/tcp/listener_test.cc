#include "transport/tcp/listener.h"

#include <gtest/gtest.h>

#include <map>

#include "transport/tcp/endpoint.h"
#include "transport/tcp/testing.h"

namespace trireme {
namespace {

constexpr char kSecret[] = "oars";

// A listener on a loop that the test runs by itself, and what happens at it.
class ListenerTest : public testing::Test {
 protected:
  Socket Connect() {
    Socket socket(io_);
    socket.connect(EndpointOf(setup_.meet));
    return socket;
  }

  void Open() {
    listener_.emplace(
        Listen(io_, setup_), kSecret, 7,
        Listener::Host{
            .judge = [](const Hello&) { return ""; },
            .welcome = [this](Listener::Guest guest) { return Welcome(std::move(guest)); },
            .refused = [this](const std::string&, const std::string& why) { ++refused_[why]; }});
    listener_->Open();
  }

  asio::awaitable<void> Welcome(Listener::Guest guest) {
    welcome_.push_back(guest.hello.from);
    co_return;
  }

  // Until it happens; the test's timeout is the limit.
  void RunUntil(FunctionRef<bool()> happened) {
    while (!happened()) io_.run_one();
  }
  int Refused() const {
    int sum = 0;
    for (const auto& [why, count] : refused_) sum += count;
    return sum;
  }

  asio::io_context io_{1};
  TcpSetup setup_ = Meet(2, 60);
  std::map<std::string, int> refused_;  // by reason
  std::vector<int> welcome_;
  std::optional<Listener> listener_;
};

// More of them than may be at the listener stand there before it opens, and before a rank.
TEST_F(ListenerTest, TheSilentStandInNobodysWay) {
  constexpr int kSilent = 300;
  std::vector<Socket> silent;
  for (int i = 0; i < kSilent; ++i) silent.push_back(Connect());
  const auto dial = [&]() -> asio::awaitable<void> {
    const std::string secret = kSecret;
    const Hello hello{.purpose = Purpose::kMeet, .size = 2, .from = 1, .incarnation = 5};
    for (uint64_t found = 0; found == 0;) {  // as a rank does that a busy machine left waiting
      try {
        const Socket socket = co_await DialName(setup_.meet, hello, secret, &found);
        EXPECT_EQ(found, 7u);
      } catch (const Unanswered&) {
        found = 0;
      }
    }
  };
  asio::co_spawn(io_, dial(), asio::detached);
  Open();
  RunUntil([&] { return !welcome_.empty(); });
  EXPECT_EQ(welcome_[0], 1);
  const auto sent_away = [&] {
    return refused_["said nothing while others were waiting"] + refused_["said nothing for 1 s"];
  };
  RunUntil([&] { return sent_away() >= kSilent; });
}

TEST_F(ListenerTest, WhoHangsUpIsSaidTo) {
  Open();
  Connect().close();
  RunUntil([&] { return Refused() == 1; });
  EXPECT_EQ(refused_["hung up"], 1);
}

TEST_F(ListenerTest, WhatBreaksADialIsSaid) {
  std::string words;
  const auto dial = [&]() -> asio::awaitable<void> {
    const std::string secret = kSecret;
    uint64_t found = 0;
    try {
      co_await DialName(setup_.meet, Hello{}, secret, &found);
    } catch (const Unanswered& error) {
      words = error.what();
    }
  };
  asio::co_spawn(io_, dial(), asio::detached);
  asio::ip::tcp::acceptor acceptor = Listen(io_, setup_);
  acceptor.async_accept([](std::error_code, Socket) {});  // and closes it
  RunUntil([&] { return !words.empty(); });
  EXPECT_EQ(words, "hung up");
  const std::system_error closed(asio::error::operation_aborted);
  EXPECT_EQ(WhyBroken(closed, 5), "said nothing for 5 s");
}

}  // namespace
}  // namespace trireme
