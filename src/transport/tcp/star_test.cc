#include "transport/tcp/star.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <random>

#include "base/error.h"
#include "transport/pulse.h"
#include "transport/tcp/asio.h"

namespace trireme {
namespace {

constexpr double kSoon = 20;  // a busy machine must not make a test fail

// A server's port that outlives the servers behind it.
class StarTest : public testing::Test {
 protected:
  StarTest() { listener_ = ListenOnLoopback(port_); }
  ~StarTest() override { close(listener_); }

  std::string Meet() const { return fmt::format("127.0.0.1:{}", port_); }
  StarSetup Setup(int rank, const std::string& secret = "s") const {
    StarSetup setup{.tcp = {.rank = rank, .size = 3, .meet = Meet(), .timeout_s = kSoon}};
    setup.tcp.secret = secret;
    setup.card = "good";
    return setup;
  }
  std::unique_ptr<World> Serve() {
    StarSetup setup = Setup(0);
    setup.tcp.listener = dup(listener_);
    setup.judge = [](const std::string& card) { return card == "good" ? "" : "another model"; };
    setup.notice = "a notice";
    setup.refused = [this](const std::string&, const std::string& why) {
      std::lock_guard lock(mutex_);
      ++refused_;
      last_ = why;
    };
    return JoinStar(setup);
  }
  std::string last() {
    std::lock_guard lock(mutex_);
    return last_;
  }

  int port_ = 0, listener_ = -1;
  std::mutex mutex_;
  std::atomic<int> refused_ = 0;
  std::string last_;
};

int64_t Hear(Link& link) {
  Message message;
  EXPECT_EQ(link.Receive(message, After(kSoon)), Arrival::kMessage);
  return message.ints.empty() ? -1 : message.ints[0];
}

TEST_F(StarTest, RanksAndGuestsTalkToTheServer) {
  const auto server = Serve();
  EXPECT_FALSE(server->together());
  const auto one = JoinStar(Setup(1));
  one->LinkTo(0).Send({.ints = {11}});
  EXPECT_EQ(Hear(server->LinkTo(1)), 11);
  server->LinkTo(2).Send({.ints = {22}});  // who is not there yet gets it when it comes
  const auto two = JoinStar(Setup(2));
  EXPECT_EQ(Hear(two->LinkTo(0)), 22);

  EXPECT_EQ(server->reception()->Next().link, nullptr);
  const auto guest = JoinStar(Setup(kNoRank));
  guest->LinkTo(0).Send({.ints = {33}});
  Reception::Guest met;
  for (const Deadline until = After(kSoon); !met.link && After(0) < until;) {
    met = server->reception()->Next();
  }
  ASSERT_NE(met.link, nullptr);
  EXPECT_EQ(Hear(*met.link), 33);
  EXPECT_NE(met.name.find("127.0.0.1"), std::string::npos);
}

TEST_F(StarTest, AnotherLifeOfEitherEndIsTold) {
  auto server = Serve();
  auto client = JoinStar(Setup(1));
  client->LinkTo(0).Send({.ints = {1}});
  EXPECT_EQ(Hear(server->LinkTo(1)), 1);
  client.reset();
  client = JoinStar(Setup(1));
  client->LinkTo(0).Send({.ints = {2}});
  Message message;
  Arrival arrival;  // of the first life's end, perhaps, and of the second
  do {
    arrival = server->LinkTo(1).Receive(message, After(kSoon));
  } while (arrival == Arrival::kGone);
  EXPECT_EQ(arrival, Arrival::kRenewed);
  EXPECT_EQ(Hear(server->LinkTo(1)), 2);

  server.reset();
  server = Serve();
  do {
    arrival = client->LinkTo(0).Receive(message, After(kSoon));
  } while (arrival == Arrival::kGone);
  EXPECT_EQ(arrival, Arrival::kRenewed);
  client->LinkTo(0).Send({.ints = {3}});
  EXPECT_EQ(Hear(server->LinkTo(1)), 3);
}

TEST_F(StarTest, StrangersAreRefusedWithOneClearLine) {
  const auto server = Serve();
  const auto refusal = [&](StarSetup setup) -> std::string {
    const auto client = JoinStar(setup);
    Message message;
    try {
      client->LinkTo(0).Receive(message, After(kSoon));
    } catch (const PeerLost& error) {
      return error.what();
    }
    return "it was let in";
  };
  EXPECT_NE(refusal(Setup(1, "guess")).find("secret"), std::string::npos);
  StarSetup other = Setup(1);
  other.card = "bad";
  EXPECT_NE(refusal(other).find("another model"), std::string::npos);
  StarSetup none = Setup(7);
  EXPECT_NE(refusal(none).find("no rank 7"), std::string::npos);
  EXPECT_EQ(refused_, 3);

  EXPECT_EQ(ReadNotice(Meet(), "s", kSoon), "a notice");
  EXPECT_THROW(ReadNotice(Meet(), "guess", kSoon), Error);
  const auto good = JoinStar(Setup(1));  // and the server goes on
  good->LinkTo(0).Send({.ints = {5}});
  EXPECT_EQ(Hear(server->LinkTo(1)), 5);
}

// Bytes at the door: random ones, good beginnings cut short or followed by garbage.
TEST_F(StarTest, TheDoorStandsGarbage) {
  const auto server = Serve();
  const auto good = JoinStar(Setup(1));
  std::mt19937 random(3);
  const int tries = std::getenv("TRIREME_FUZZ") ? std::atoi(std::getenv("TRIREME_FUZZ")) : 60;
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

TEST(PulseTest, FollowsWhatItHears) {
  Pulse pulse(3, 60);
  const Deadline start = After(0);
  const auto at = [&](double s) {
    return start + std::chrono::duration_cast<Deadline::duration>(std::chrono::duration<double>(s));
  };
  EXPECT_EQ(pulse.overdue_s(at(100)), 0);  // never heard
  for (int i = 0; i < 50; ++i) pulse.Beat(at(i));
  EXPECT_NEAR(pulse.limit_s(), 3, 1e-9);  // regular: the floor
  EXPECT_EQ(pulse.overdue_s(at(51)), 0);
  EXPECT_NEAR(pulse.overdue_s(at(49 + 3.5)), 3.5, 1e-9);
  Pulse slow(3, 60);
  double t = 0;
  for (int i = 0; i < 50; ++i) slow.Beat(at(t += i % 2 ? 1 : 7));
  EXPECT_GT(slow.limit_s(), 10);  // irregular: patient
  EXPECT_EQ(slow.overdue_s(at(t + 9)), 0);
  EXPECT_GT(slow.overdue_s(at(t + 61)), 0);  // but not for ever
}

}  // namespace
}  // namespace trireme
