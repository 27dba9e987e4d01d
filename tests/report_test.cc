// Looking at runs: finished, running, killed, damaged.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "support/whole_test.h"

namespace trireme::whole {
namespace {

class ReportTest : public WholeTest {
 protected:
  void ExpectIn(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in:\n"
                                                  << text.substr(0, 3000);
  }

  // A run of many short steps, far from its end.
  std::unique_ptr<Running> StartLongRun() {
    auto running = Start({"train", "--out", "run", "--quiet", "--epochs", "100000", "--set",
                          "emulate.step_ms=2", "--set", "trainer.evaluate_every=1"});
    EXPECT_TRUE(Await([&] { return Lines() >= 3; })) << running->err();
    return running;
  }

  int64_t Lines() const {  // of the run's metrics
    if (!std::filesystem::exists(At("run/metrics.jsonl"))) return 0;
    const std::string text = Read("run/metrics.jsonl");
    return std::count(text.begin(), text.end(), '\n');
  }

  // Ends when `done` says so, or takes too long.
  template <class Done>
  bool Await(Done done) {
    for (const Stopwatch watch; watch.seconds() < kTimeout; SleepFor(0.05)) {
      if (done()) return true;
    }
    return false;
  }
};

TEST_F(ReportTest, APageSaysWhatTheRunWas) {
  Succeed({"train", "--epochs", "10", "--ranks", "2", "--out", "runs/a", "--quiet"});
  Succeed({"train", "--epochs", "10", "--lr", "0.05", "--out", "runs/b", "--quiet"});
  const std::string said = Succeed({"report", "runs/a", "runs/b", "--out", "out/ab.html"}).out;
  ExpectIn(said, "out/ab.html");
  const std::string page = Read("out/ab.html");
  for (const char* part :
       {"<h1>2 runs</h1>", "What differs", "optimizer.lr", "0.05", "Confusion of a", "Iris-setosa",
        "Where the time went", "b r0", "trireme train runs/a/config.toml --out runs/a-again",
        "a was started with: trireme train --epochs 10 --ranks 2"}) {
    ExpectIn(page, part);
  }
}

TEST_F(ReportTest, WhatIsNoResultIsRefused) {
  std::filesystem::create_directories(At("empty"));
  Refuse({"report"}, 2, {"DIR"});
  Refuse({"report", "nowhere"}, 2, {"nowhere", "does not exist"});
  Refuse({"report", "empty"}, 2, {"empty", "config.toml", "page.json"});
  Refuse({"watch", "empty"}, 2, {"empty", "is not a run"});
  Write("bad/page.json", "{\"page\":1");
  Refuse({"report", "bad"}, 1, {"bad/page.json"});
  Refuse({"watch", "empty", "--port", "1"}, 2, {"--http"});
}

TEST_F(ReportTest, OfManyOneThatIsDamagedIsLeftOut) {
  Succeed({"train", "--epochs", "2", "--out", "runs/a", "--quiet"});
  Write("runs/bad/page.json", "{\"page\":1");
  Write("runs/notes.txt", "mine");
  const Outcome said =
      Succeed({"report", "runs/a", "runs/bad", "runs/notes.txt", "--out", "all.html"});
  ExpectIn(said.err, "left out: runs/bad/page.json");
  ExpectIn(said.err, "left out: runs/notes.txt: is neither a run");
  ExpectIn(Read("all.html"), "<h2>Left out</h2>");
  ExpectIn(Read("all.html"), "Run a");
  Refuse({"report", "runs/bad", "runs/bad"}, 1, {"page.json"});
  Refuse({"report", "runs/a", "runs/b"}, 2, {"runs/b", "does not exist"});
}

TEST_F(ReportTest, ARunIsWatchedUntilItEnds) {
  const auto running = Start({"train", "--out", "run", "--quiet", "--epochs", "6", "--set",
                              "emulate.step_ms=10", "--set", "trainer.evaluate_every=2"});
  ASSERT_TRUE(Await([&] { return IsRun("run"); }));
  running->Kill(SIGSTOP);  // until it is watched, however long that takes
  const auto watching = Start({"watch", "run", "--every", "0.1"}, {"env", "LC_ALL=C.UTF-8"});
  EXPECT_TRUE(Await([&] { return watching->out().find("run | running") != std::string::npos; }));
  running->Kill(SIGCONT);
  const Outcome watched = watching->Wait(kTimeout);
  EXPECT_EQ(watched.exit_code, 0) << watched.err;
  EXPECT_EQ(running->Wait(kTimeout).exit_code, 0);
  ExpectIn(watched.out, "run | running");
  ExpectIn(watched.out, "run | done | epoch 6/6 | step 90");
  ExpectIn(watched.out, "accuracy (%)");
  // A run that is over is shown once.
  const std::string again = Succeed({"watch", "run"}).out;
  EXPECT_EQ(again.find("run | done"), again.rfind("run | done")) << again;
  const Outcome plain = Run({"watch", "run", "--once"}, kTimeout, {"env", "LC_ALL=C"});
  EXPECT_EQ(plain.exit_code, 0);
  for (const char c : plain.out) ASSERT_LT(uint8_t(c), 0x80);
}

TEST_F(ReportTest, AKilledRunGivesAPageAndWatchingItEnds) {
  const auto running = StartLongRun();
  const auto watching = Start({"watch", "run", "--every", "0.1"});
  ASSERT_TRUE(Await([&] { return watching->out().find("run | running") != std::string::npos; }));
  running->Kill(SIGKILL);
  running->Wait(kTimeout);
  const Outcome watched = watching->Wait(kTimeout);
  EXPECT_EQ(watched.exit_code, 0);
  ExpectIn(watched.out, "run | stopped (killed or failed) | epoch ");
  const std::string metrics = Read("run/metrics.jsonl");
  Write("run/metrics.jsonl", metrics.substr(0, metrics.size() - 15));
  Succeed({"report", "run"});
  ExpectIn(Read("run/report.html"),
           "The run: stopped (killed or failed). Its last line is from step");
}

TEST_F(ReportTest, WatchingARunThatGoesOnEndsWithASignal) {
  const auto running = StartLongRun();
  const auto watching = Start({"watch", "run", "--every", "0.1"});
  ASSERT_TRUE(Await([&] { return watching->out().find("run | running") != std::string::npos; }));
  watching->Kill(SIGINT);
  EXPECT_EQ(watching->Wait(kTimeout).exit_code, 130);
}

// One request to 127.0.0.1; what came back, until the server closed.
std::string Ask(int port, const std::string& request) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    ::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    char buffer[4096];
    for (ssize_t got; (got = ::recv(fd, buffer, sizeof(buffer), 0)) > 0;) {
      answer.append(buffer, size_t(got));
    }
  }
  ::close(fd);
  return answer;
}

TEST_F(ReportTest, ARunIsServedAsItGoesOn) {
  const auto running = StartLongRun();
  const auto watching = Start({"watch", "run", "--http", "--port", "0", "--every", "0.2"});
  ASSERT_TRUE(Await([&] { return watching->out().find("/ shows") != std::string::npos; }));
  const std::string said = watching->out();
  const int port = std::stoi(said.substr(said.find("127.0.0.1:") + 10));
  const std::string host = "Host: 127.0.0.1:" + std::to_string(port) + "\r\n\r\n";
  const std::string page = Ask(port, "GET / HTTP/1.1\r\n" + host);
  ExpectIn(page, "HTTP/1.1 200 OK");
  ExpectIn(page, "connect-src 'self'");
  const auto data = [&] {
    const std::string answer = Ask(port, "GET /data HTTP/1.1\r\n" + host);
    return ParseJson(answer.substr(std::min(answer.size(), answer.find("\r\n\r\n"))), "/data");
  };
  const Json before = data();
  EXPECT_FALSE(before.At("over").AsBool());
  ExpectIn(before.At("state").AsString(), "run | running | epoch ");
  ExpectIn(before.At("state").AsString(), " left | ");
  ExpectIn(before.At("title").AsString(), "/100,000, ");
  ExpectIn(before.At("html").AsString(), "<figure");
  EXPECT_TRUE(Await([&] { return data().At("html").AsString() != before.At("html").AsString(); }));
  ExpectIn(Ask(port, "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"), "HTTP/1.1 403 ");
  ExpectIn(Ask(port, "GET /run/config.toml HTTP/1.1\r\n" + host), "HTTP/1.1 404 ");
  ExpectIn(Ask(port, "DELETE / HTTP/1.1\r\n" + host), "HTTP/1.1 405 ");
  watching->Kill(SIGTERM);
  EXPECT_EQ(watching->Wait(kTimeout).exit_code, 143);
  running->Kill(SIGTERM);
  EXPECT_EQ(running->Wait(kTimeout).exit_code, 143);
  ExpectIn(Succeed({"watch", "run"}).out, "run | stopped by SIGTERM | epoch ");
  ExpectIn(Succeed({"list", "runs", "."}).out, "stopped by SIGTERM");
}

}  // namespace
}  // namespace trireme::whole
