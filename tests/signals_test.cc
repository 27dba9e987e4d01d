// Ctrl-C and kill: the run ends after the step, saved, and says how to go on.
#include <chrono>
#include <csignal>
#include <thread>

#include "support/terminal.h"
#include "support/whole_test.h"

namespace trireme::whole {
namespace {

class SignalsTest : public WholeTest {
 protected:
  // Long enough to be hit in the middle: 63 steps an epoch, and checkpoints to see how far it is.
  Words Endless(const std::string& run, const Words& more = {}) {
    return With({"train", "--data", "synthetic:8x8x1:5:500", "--model", "mlp:64-32-5", "--batch",
                 "8", "--lr", "0.02", "--set", "optimizer.schedule=constant", "--set",
                 "trainer.checkpoint_steps=50", "--quiet", "--steps", "100000000", "--out", run},
                more);
  }

  // Where the run stands after `signal`.
  int64_t Interrupt(const std::string& run, const Words& words, int signal, int code) {
    auto running = Start(words);
    EXPECT_TRUE(AwaitStep(*running, run, 100)) << running->err();
    running->Kill(signal);
    const Outcome outcome = running->Wait(kTimeout);
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    EXPECT_NE(outcome.err.find("trireme train --resume " + run), std::string::npos) << outcome.err;
    EXPECT_FALSE(IsDone(run));
    const std::string state = Read(Latest(run) + "/state.json");
    return ParseJson(state, "state").At("step").AsInt();
  }

  static bool AwaitScreen(Terminal& terminal, const std::string& part) {
    for (const Stopwatch watch; watch.seconds() < kTimeout && !terminal.Over(); SleepFor(0.01)) {
      if (terminal.screen().find(part) != std::string::npos) return true;
    }
    return false;
  }

  void ResumesToTheSame(const Words& more, int signal, int code) {
    const int64_t stopped = Interrupt("parts", Endless("parts", more), signal, code);
    const std::string all = std::to_string(stopped + 100);
    Succeed({"train", "--resume", "parts", "--steps", all, "--quiet"});
    Succeed(With(Endless("whole", more), {"--steps", all}));
    EXPECT_EQ(Hash("parts"), Hash("whole"));
    EXPECT_EQ(Number("parts", "epochs"), Number("whole", "epochs"));
    EXPECT_EQ(Epochs("parts").size(), Epochs("whole").size());
  }
};

TEST_F(SignalsTest, Interrupt) { ResumesToTheSame({}, SIGINT, 130); }
TEST_F(SignalsTest, Terminate) { ResumesToTheSame({}, SIGTERM, 143); }
TEST_F(SignalsTest, HangUp) { ResumesToTheSame({}, SIGHUP, 143); }
TEST_F(SignalsTest, HangUpOfProcesses) {
  ResumesToTheSame({"--ranks", "2", "--transport", "shm"}, SIGHUP, 143);
}
TEST_F(SignalsTest, InterruptSeveralRanks) { ResumesToTheSame({"--ranks", "3"}, SIGINT, 130); }
TEST_F(SignalsTest, TerminateMoreRanksThanShards) {
  ResumesToTheSame({"--ranks", "3", "--set", "trainer.shards=2"}, SIGTERM, 143);
}

TEST_F(SignalsTest, UnderNohupAHangUpIsNoWishToStop) {
  auto running = Start(Endless("a"), {"nohup"});
  ASSERT_TRUE(AwaitStep(*running, "a", 50)) << running->err();
  running->Kill(SIGHUP);
  EXPECT_TRUE(AwaitStep(*running, "a", 1000)) << running->err();
  running->Kill(SIGTERM);
  EXPECT_EQ(running->Wait(kTimeout).exit_code, 143);
}

// Between ranks that are processes, and in one that is alone.
TEST_F(SignalsTest, InATerminalTheFirstInterruptIsAnsweredAndNothingIsLeftOnTheScreen) {
  for (const Words& ranks : {Words{"--ranks", "2", "--transport", "shm"}, Words{}}) {
    const std::string run = "r" + std::to_string(ranks.size());
    Words words = Endless(run, ranks);
    std::erase(words, "--quiet");
    Terminal terminal(words, At("."));
    ASSERT_TRUE(AwaitScreen(terminal, " samples/s")) << terminal.screen();
    terminal.Type("\x03");
    EXPECT_EQ(terminal.Wait(kTimeout), 130) << terminal.screen();
    const std::string screen = terminal.screen();
    const std::string last = "trireme train --resume " + run + "\r\n";
    const size_t at = screen.find(last);
    ASSERT_NE(at, screen.npos) << screen;
    EXPECT_EQ(screen.substr(at + last.size()), "") << screen;
  }
}

TEST_F(SignalsTest, AtTheEndOfAnEpochTheEpochCounts) {
  // Two steps an epoch: every other signal is seen in an epoch's last step.
  for (int attempt = 0; attempt < 6; ++attempt) {
    const std::string run = "r" + std::to_string(attempt);
    const int64_t step = Interrupt(
        run, Endless(run, {"--batch", "250", "--set", "trainer.evaluate_every=0"}), SIGINT, 130);
    EXPECT_EQ(int64_t(Epochs(run).size()), step / 2) << "at step " << step;
    const std::string all = std::to_string(step + 4);
    Succeed({"train", "--resume", run, "--steps", all, "--quiet"});
    EXPECT_EQ(Number(run, "epochs"), double((step + 4) / 2));
  }
}

TEST_F(SignalsTest, EasgdGoesOnAndEnds) {
  const Words more = {"--ranks", "3", "--strategy", "easgd"};
  const int64_t step = Interrupt("a", Endless("a", more), SIGINT, 130);
  const int64_t epochs = step / 63 + 20;
  Succeed({"train", "--resume", "a", "--steps", std::to_string(epochs * 63), "--quiet"});
  EXPECT_EQ(Number("a", "steps"), double(epochs * 63));
  EXPECT_EQ(Number("a", "epochs"), double(epochs));
  EXPECT_EQ(int64_t(Epochs("a").size()), epochs);
}

TEST_F(SignalsTest, EasgdCountsEveryEpochThroughSignalsAndKills) {
  // Two leases an epoch for three workers: the one that records sleeps through some ends.
  const Words words = Endless(
      "a", {"--ranks", "4", "--strategy", "easgd", "--batch", "250", "--set", "strategy.period=1",
            "--set", "trainer.checkpoint_steps=7", "--set", "trainer.evaluate_every=0"});
  int64_t step = 0;
  for (const int signal : {SIGINT, SIGKILL, SIGTERM, SIGKILL, SIGINT}) {
    auto running = Start(step == 0 ? words : Words{"train", "--resume", "a", "--quiet"});
    ASSERT_TRUE(AwaitStep(*running, "a", step + 20)) << running->err();
    running->Kill(signal);
    EXPECT_TRUE(running->Wait(kTimeout).in_time);
    step = ParseJson(Read(Latest("a") + "/state.json"), "state").At("step").AsInt();
  }
  const int64_t epochs = step / 2 + 20;
  Succeed({"train", "--resume", "a", "--steps", std::to_string(epochs * 2), "--quiet"});
  EXPECT_EQ(Number("a", "epochs"), double(epochs));
  const auto lines = Epochs("a");
  ASSERT_EQ(int64_t(lines.size()), epochs);
  for (int64_t i = 0; i < epochs; ++i) EXPECT_EQ(lines[i].At("epoch").AsInt(), i + 1);
}

TEST_F(SignalsTest, EvaluationAndPredictionEndAtOnce) {
  Succeed({"train", "--steps", "20", "--out", "a"});
  std::string rows;
  for (int i = 0; i < 500000; ++i) rows += "5.1,3.5,1.4,0.2\n";
  Write("many.csv", rows);
  for (const int signal : {SIGINT, SIGTERM}) {
    Outcome outcome;
    for (int attempt = 0; attempt < 4; ++attempt) {
      auto running = Start({"predict", "a", "many.csv"});
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      running->Kill(signal);
      outcome = running->Wait(kTimeout);
      if (outcome.exit_code != 0 || outcome.signal != 0) break;
      rows += rows;  // it was faster: once more, with more to do
      Write("many.csv", rows);
    }
    EXPECT_TRUE(outcome.signal == signal || outcome.exit_code == 128 + signal)
        << outcome.exit_code << outcome.err;
  }
}

}  // namespace
}  // namespace trireme::whole
