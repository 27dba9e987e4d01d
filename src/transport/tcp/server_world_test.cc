#include "transport/tcp/server_world.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "transport/failure_detector.h"
#include "transport/tcp/asio.h"
#include "transport/tcp/frame.h"
#include "transport/tcp/listener.h"

namespace trireme {
namespace {

constexpr double kSoon = 60;  // a busy machine must not make a test fail

// TRIREME_FUZZ and TRIREME_SEED in the environment ask for more tries and other bytes.
int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? ParseNumber<int64_t>(text).value_or(otherwise) : otherwise;
}
int FuzzTries(int otherwise) { return int(FromEnvironment("TRIREME_FUZZ", otherwise)); }
int64_t FuzzSeed() { return FromEnvironment("TRIREME_SEED", 3); }

// A server's port that outlives the servers behind it.
class ServerWorldTest : public testing::Test {
 protected:
  ServerWorldTest() { listener_ = ListenOnLoopback(port_); }
  ~ServerWorldTest() override { close(listener_); }

  std::string Meet() const { return fmt::format("127.0.0.1:{}", port_); }
  ServerWorldSetup Setup(int rank, const std::string& secret = "s") const {
    ServerWorldSetup setup{.tcp = {.rank = rank, .size = 3, .meet = Meet(), .timeout_s = kSoon}};
    setup.tcp.secret = secret;
    setup.tcp.latency_s = latency_s_;
    setup.fingerprint = "good";
    return setup;
  }
  std::unique_ptr<World> Serve() {
    ServerWorldSetup setup = Setup(0);
    setup.tcp.listener = dup(listener_);
    setup.judge = [](const std::string& fingerprint) {
      return fingerprint == "good" ? "" : "another model";
    };
    setup.run_info = "a run info";
    setup.refused = [this](const std::string&, const std::string& why) {
      std::lock_guard lock(mutex_);
      ++refused_;
      last_ = why;
    };
    return JoinServerWorld(setup);
  }
  // The server tells after it has answered, so a client may know first: waits for that many.
  int Refused(int count) {
    for (const Deadline until = After(kSoon); refused_ < count && After(0) < until;) {
      std::this_thread::yield();
    }
    return refused_;
  }
  std::string last() {
    std::lock_guard lock(mutex_);
    return last_;
  }

  int port_ = 0, listener_ = -1;
  double latency_s_ = 0;
  std::mutex mutex_;
  std::atomic<int> refused_ = 0;
  std::string last_;
};

int64_t Hear(Link& link) {
  Message message;
  EXPECT_EQ(link.Receive(message, After(kSoon)), Arrival::kMessage);
  return message.ints.empty() ? -1 : message.ints[0];
}

TEST_F(ServerWorldTest, RanksAndGuestsTalkToTheServer) {
  const auto server = Serve();
  EXPECT_FALSE(server->together());
  const auto one = JoinServerWorld(Setup(1));
  one->LinkTo(0).Send({.ints = {11}});
  EXPECT_EQ(Hear(server->LinkTo(1)), 11);
  server->LinkTo(2).Send({.ints = {22}});  // who is not there yet gets it when it comes
  const auto two = JoinServerWorld(Setup(2));
  EXPECT_EQ(Hear(two->LinkTo(0)), 22);

  EXPECT_EQ(server->acceptor()->Next().link, nullptr);
  const auto guest = JoinServerWorld(Setup(kNoRank));
  guest->LinkTo(0).Send({.ints = {33}});
  Acceptor::Guest met;
  for (const Deadline until = After(kSoon); !met.link && After(0) < until;) {
    met = server->acceptor()->Next();
  }
  ASSERT_NE(met.link, nullptr);
  EXPECT_EQ(Hear(*met.link), 33);
  EXPECT_NE(met.name.find("127.0.0.1"), std::string::npos);
}

TEST_F(ServerWorldTest, AFarClientIsHeardAndAnsweredAsLateAsItSays) {
  constexpr double kLatency_s = 0.05;
  latency_s_ = kLatency_s;
  const auto server = Serve();
  const auto client = JoinServerWorld(Setup(1));
  client->LinkTo(0).Send({.ints = {0}});
  EXPECT_EQ(Hear(server->LinkTo(1)), 0);  // both are connected
  const Stopwatch watch;
  for (int64_t round = 1; round <= 4; ++round) {
    client->LinkTo(0).Send({.ints = {round}});
    EXPECT_EQ(Hear(server->LinkTo(1)), round);
    server->LinkTo(1).Send({.ints = {-round}});
    EXPECT_EQ(Hear(client->LinkTo(0)), -round);
  }
  EXPECT_GE(watch.seconds(), 2 * 4 * kLatency_s);
}

// What comes first, other than the end of an earlier life.
Arrival NextLife(Link& link) {
  Message message;
  Arrival arrival;
  do {
    arrival = link.Receive(message, After(kSoon));
  } while (arrival == Arrival::kGone);
  return arrival;
}

TEST_F(ServerWorldTest, AnotherLifeOfAClientIsToldAndSpokenTo) {
  auto server = Serve();
  Link& link = server->LinkTo(1);
  auto client = JoinServerWorld(Setup(1));
  client->LinkTo(0).Send({.ints = {1}});
  EXPECT_EQ(Hear(link), 1);
  client.reset();  // says goodbye
  client = JoinServerWorld(Setup(1));
  client->LinkTo(0).Send({.ints = {2}});
  EXPECT_EQ(NextLife(link), Arrival::kRenewed);
  EXPECT_EQ(Hear(link), 2);
  link.Send({.ints = {3}});
  EXPECT_EQ(Hear(client->LinkTo(0)), 3);
}

TEST_F(ServerWorldTest, AnotherLifeOfAServerThatWasKilledIsTold) {
  const pid_t first = fork();
  if (first == 0) {
    const auto server = Serve();
    Hear(server->LinkTo(1));
    server->LinkTo(1).Send({.ints = {2}});
    for (;;) pause();
  }
  const auto client = JoinServerWorld(Setup(1));
  client->LinkTo(0).Send({.ints = {1}});
  EXPECT_EQ(Hear(client->LinkTo(0)), 2);
  kill(first, SIGKILL);
  EXPECT_EQ(waitpid(first, nullptr, 0), first);

  const auto server = Serve();
  EXPECT_EQ(NextLife(client->LinkTo(0)), Arrival::kRenewed);
  client->LinkTo(0).Send({.ints = {3}});
  EXPECT_EQ(Hear(server->LinkTo(1)), 3);
}

TEST_F(ServerWorldTest, StrangersAreRefusedWithOneClearLine) {
  const auto server = Serve();
  const auto refusal = [&](ServerWorldSetup setup) -> std::string {
    const auto client = JoinServerWorld(setup);
    Message message;
    try {
      client->LinkTo(0).Receive(message, After(kSoon));
    } catch (const PeerLost& error) {
      return error.what();
    }
    return "it was let in";
  };
  EXPECT_NE(refusal(Setup(1, "guess")).find("secret"), std::string::npos);
  ServerWorldSetup other = Setup(1);
  other.fingerprint = "bad";
  EXPECT_NE(refusal(other).find("another model"), std::string::npos);
  ServerWorldSetup none = Setup(7);
  EXPECT_NE(refusal(none).find("no rank 7"), std::string::npos);
  EXPECT_EQ(Refused(3), 3);

  EXPECT_EQ(FetchRunInfo(Meet(), "s", kSoon), "a run info");
  EXPECT_THROW(FetchRunInfo(Meet(), "guess", kSoon), Error);
  const auto good = JoinServerWorld(Setup(1));  // and the server goes on
  good->LinkTo(0).Send({.ints = {5}});
  EXPECT_EQ(Hear(server->LinkTo(1)), 5);
}

// A program of another version says so in its first bytes, which no version may move.
TEST_F(ServerWorldTest, AnotherVersionIsToldWhichOneThisIs) {
  const auto server = Serve();
  asio::io_context io;
  Socket socket(io);
  socket.connect({asio::ip::make_address("127.0.0.1"), uint16_t(port_)});
  std::array<char, 80> hello = {'t', 'r', 'i', 'r', 'e', 'm', 'e', '\n', 7};
  asio::write(socket, asio::buffer(hello));
  std::array<char, 48> challenge;
  asio::read(socket, asio::buffer(challenge));
  asio::write(socket, asio::buffer(hello, 32));  // a proof of its kind
  std::array<char, 40> verdict;
  asio::read(socket, asio::buffer(verdict));
  std::error_code end;
  std::string words;
  asio::read(socket, asio::dynamic_buffer(words), end);
  EXPECT_NE(words.find("speaks version 2 of the protocol, the other one version 7"),
            std::string::npos)
      << words;
  EXPECT_EQ(Refused(1), 1);
  EXPECT_EQ(last(), words);
  const auto good = JoinServerWorld(Setup(1));  // and the server goes on
  good->LinkTo(0).Send({.ints = {5}});
  EXPECT_EQ(Hear(server->LinkTo(1)), 5);
}

// Bytes at the listener: random ones, good beginnings cut short or followed by garbage.
TEST_F(ServerWorldTest, TheDoorStandsGarbage) {
  const auto server = Serve();
  const auto good = JoinServerWorld(Setup(1));
  SCOPED_TRACE(fmt::format("TRIREME_SEED={}", FuzzSeed()));
  std::mt19937 random{unsigned(FuzzSeed())};
  const int tries = FuzzTries(60);
  for (int i = 0; i < tries; ++i) {
    asio::io_context io;
    Socket socket(io);
    socket.connect({asio::ip::make_address("127.0.0.1"), uint16_t(port_)});
    std::vector<unsigned char> bytes(random() % 400);
    for (auto& b : bytes) b = static_cast<unsigned char>(random());
    const char magic[] = "trireme\n";
    if (i % 2 && bytes.size() > 80) {
      std::copy(magic, magic + 8, bytes.begin());
      bytes[8] = 1;  // version
      std::fill(bytes.begin() + 9, bytes.begin() + 12, 0);
      bytes[12] = static_cast<unsigned char>(1 + random() % 6);
    }
    std::error_code ignored;
    asio::write(socket, asio::buffer(bytes), ignored);
    if (i % 3 == 0) socket.shutdown(Socket::shutdown_both, ignored);
    if (i % 5 == 0) {
      good->LinkTo(0).Send({.ints = {i}});
      EXPECT_EQ(Hear(server->LinkTo(1)), i);
    }
  }
}

// One that knows the secret, is let in, and then sends what no client sends: lengths that nobody
// has, frames cut short, numbers out of turn, kinds of other connections.
TEST_F(ServerWorldTest, AnInsiderThatSendsGarbageHarmsNobody) {
  const auto server = Serve();
  const auto good = JoinServerWorld(Setup(1));
  SCOPED_TRACE(fmt::format("TRIREME_SEED={}", FuzzSeed()));
  std::mt19937_64 random{uint64_t(FuzzSeed())};
  const auto visit = [&](std::span<const std::byte> bytes, bool lingers) -> asio::awaitable<void> {
    const Hello hello{.purpose = Purpose::kJoin, .size = 3, .from = 2, .incarnation = random() | 1};
    uint64_t found = 0;
    const asio::ip::tcp::endpoint where(asio::ip::make_address("127.0.0.1"), uint16_t(port_));
    try {
      Socket socket = co_await Dial(where, hello, "s", &found);
      co_await WriteText(socket, "good");
      co_await ReadText(socket, 1 << 20);
      const auto buffer = asio::buffer(bytes.data(), bytes.size());
      co_await asio::async_write(socket, buffer, asio::use_awaitable);
      const Watch watch(socket, After(lingers ? 0.02 : 0));
      char answer[64];
      for (;;) co_await socket.async_read_some(asio::buffer(answer), asio::use_awaitable);
    } catch (const std::exception&) {  // the server has hung up, or it was long enough
    }
  };
  const int tries = FuzzTries(60);
  for (int i = 0; i < tries; ++i) {
    std::vector<std::byte> bytes;
    const auto add = [&](const Frame& frame) {
      const FrameBytes coded = Encode(frame);
      bytes.insert(bytes.end(), coded.begin(), coded.end());
    };
    const auto size = [&]() -> uint64_t {  // mostly small ones, some that nobody has
      return random() % 4 ? random() % 50 : random() >> (random() % 64);
    };
    if (random() % 8) add({FrameKind::kResume, 0, random() % 8 ? 0 : random()});
    for (uint64_t n = random() % 6; n > 0; --n) {
      const auto kind = FrameKind(random() % 17);
      add({kind, int32_t(random()), random() % 4, size(), size()});
      const size_t body = random() % 3 ? size() % 4000 : 0;
      for (size_t b = 0; b < body; ++b) bytes.push_back(std::byte(random()));
    }
    if (random() % 4 == 0 && !bytes.empty()) bytes[random() % bytes.size()] = std::byte(random());
    if (random() % 4 == 0) bytes.resize(bytes.size() - random() % (bytes.size() + 1));
    asio::io_context io;
    asio::co_spawn(io, visit(bytes, i % 4 == 0), asio::detached);
    io.run();
    Message message;  // what looked like messages
    while (server->LinkTo(2).Receive(message, After(0)) != Arrival::kNothing) {
    }
    if (i % 5 == 0) {
      good->LinkTo(0).Send({.ints = {i}});
      EXPECT_EQ(Hear(server->LinkTo(1)), i);
    }
  }
  // One of them is told of in words that say what was wrong.
  std::vector<std::byte> huge;
  for (const Frame& frame :
       {Frame{FrameKind::kResume}, Frame{FrameKind::kMessage, 2, 1, 3, uint64_t{1} << 40}}) {
    const FrameBytes coded = Encode(frame);
    huge.insert(huge.end(), coded.begin(), coded.end());
  }
  asio::io_context io;
  asio::co_spawn(io, visit(huge, true), asio::detached);
  io.run();
  for (const Deadline until = After(kSoon); After(0) < until;) {
    if (last().find("it announced") == 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(last(),
            "it announced a message of 3 integers and 1099511627776 values; at most 1048576 and "
            "8589934592 are allowed");
}

TEST(FailureDetectorTest, FollowsWhatItHears) {
  FailureDetector detector(3, 60);
  const Deadline start = After(0);
  const auto at = [&](double s) {
    return start + std::chrono::duration_cast<Deadline::duration>(std::chrono::duration<double>(s));
  };
  EXPECT_EQ(detector.overdue_s(at(100)), 0);  // never heard
  for (int i = 0; i < 50; ++i) detector.Beat(at(i));
  EXPECT_NEAR(detector.limit_s(), 3, 1e-9);  // regular: the floor
  EXPECT_EQ(detector.overdue_s(at(51)), 0);
  EXPECT_NEAR(detector.overdue_s(at(49 + 3.5)), 3.5, 1e-9);
  FailureDetector slow(3, 60);
  double t = 0;
  for (int i = 0; i < 50; ++i) slow.Beat(at(t += i % 2 ? 1 : 7));
  EXPECT_GT(slow.limit_s(), 10);  // irregular: patient
  EXPECT_EQ(slow.overdue_s(at(t + 9)), 0);
  EXPECT_GT(slow.overdue_s(at(t + 61)), 0);  // but not for ever
}

}  // namespace
}  // namespace trireme
