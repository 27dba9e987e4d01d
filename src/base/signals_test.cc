#include "base/signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/files.h"
#include "base/stop_notice.h"

namespace trireme {
namespace {

TEST(Signals, SayWhichCameFirst) {
  {
    const Signals signals;
    EXPECT_FALSE(signals.stop());
    EXPECT_EQ(signals.ExitCode(), 0);
    raise(SIGTERM);
    EXPECT_EQ(signals.received(), SIGTERM);
    EXPECT_EQ(signals.ExitCode(), 143);
    raise(SIGTERM);  // launchers repeat it
    EXPECT_EQ(signals.ExitCode(), 143);
  }
  const Signals fresh;
  EXPECT_FALSE(fresh.stop());
  raise(SIGINT);
  EXPECT_EQ(fresh.ExitCode(), 130);
}

TEST(Signals, ATerminalThatGoesAwayIsATermination) {
  const Signals signals;
  raise(SIGHUP);
  EXPECT_EQ(signals.received(), SIGHUP);
  EXPECT_EQ(signals.ExitCode(), 143);
}

TEST(Signals, NohupStaysInForce) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  {
    const Signals signals;
    raise(SIGHUP);
    EXPECT_FALSE(signals.stop());
  }
  raise(SIGHUP);
  EXPECT_EQ(std::signal(SIGHUP, before), SIG_IGN);
}

TEST(StopNotice, AnswersTheFirstInterruptOnce) {
  const TemporaryDirectory folder;
  const int fd = open((folder / "log").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(fd, 0);
  LogOutput output(fd);
  for (const int signal : {SIGINT, SIGTERM}) {
    const Signals signals;
    StopNotice notice(signals, Log(output), "train", "stops after this step");
    EXPECT_FALSE(notice.stop());
    raise(signal);
    EXPECT_EQ(notice.received(), signal);
    EXPECT_TRUE(notice.stop());
  }
  const Signals signals;
  StopNotice late(signals, Log(output), "train", "stops after this step");
  late.Over();
  raise(SIGINT);
  EXPECT_TRUE(late.stop());
  close(fd);
  const std::string text = ReadFile(folder / "log");
  const std::string expected =
      "train: stops after this step; press Ctrl-C again to stop immediately\n";
  EXPECT_TRUE(text.ends_with(expected)) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

TEST(Signals, PutTheOldHandlersBack) {
  struct sigaction before, during, after;
  sigaction(SIGTERM, nullptr, &before);
  {
    const Signals signals;
    sigaction(SIGTERM, nullptr, &during);
  }
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_NE(before.sa_handler, during.sa_handler);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

// The other ranks may have stopped this one before the scheduler's signal arrives here.
TEST(Signals, AWishToStopThatComesTooLateDoesNoHarm) {
  { const Signals signals; }
  raise(SIGUSR1);
  const Signals next;
  EXPECT_FALSE(next.stop());
  raise(SIGUSR1);
  EXPECT_TRUE(next.stop());
}

TEST(Signals, AClosedPipeIsAnErrorOfWrite) {
  const Signals signals;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  close(ends[1]);
}

void InterruptTwice(int first) {
  const Signals signals;
  raise(first);
  raise(SIGINT);
  _exit(0);
}

TEST(SignalsDeathTest, ASecondInterruptEndsAtOnce) {
  EXPECT_EXIT(InterruptTwice(SIGINT), testing::ExitedWithCode(130), "");
  EXPECT_EXIT(InterruptTwice(SIGTERM), testing::ExitedWithCode(130), "");
}

TEST(SignalsDeathTest, TwoAtATimeAreABug) {
  EXPECT_DEATH(
      {
        const Signals one;
        const Signals two;
      },
      "installed");
}

}  // namespace
}  // namespace trireme
