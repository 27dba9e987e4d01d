#include "report/terminal/watch_view.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "base/toml.h"

namespace trireme {
namespace {

RunData SomeRun() {
  RunData run;
  run.path = "runs/a-name-of-some-length";
  run.name = "a-name-of-some-length";
  run.config = ParseToml("[trainer]\nepochs = 20\n", "config.toml");
  for (int epoch = 1; epoch <= 5; ++epoch) {
    MetricsLine line;
    line.epoch = epoch;
    line.step = 938 * epoch;
    line.time_s = 2 * epoch;
    line.train_loss = 0.5 / epoch;
    line.test_loss = 0.6 / epoch;
    line.train_accuracy = 0.8;
    line.test_accuracy = 5.0 / 6;
    line.samples_per_second = 101883.2;
    for (int rank = 0; rank < 4; ++rank) {
      line.ranks.push_back({rank, {.data = 0.1, .forward = 1, .backward = 2}, 0, 0});
    }
    run.epochs.push_back(line);
  }
  run.state.kind = RunState::kRunning;
  run.news_at = 1000;
  return run;
}

TEST(WatchView, SaysWhatIsLeftAndHowOldTheNewsAre) {
  RunData run = SomeRun();
  EXPECT_EQ(WatchStatus(run, 1001),
            "runs/a-name-of-some-length | running | epoch 5/20 | step 4,690 | 30.0 s left | train "
            "loss 0.1000 | test loss 0.1200 | test accuracy 83.33 % | 101,883 samples/s");
  EXPECT_NE(WatchStatus(run, 1000 + 40 * 60).find(" | last news 40 min ago | "), std::string::npos);
  EXPECT_EQ(WatchTitle(run), "epoch 5/20, 83.33 % - a-name-of-some-length");
  run.epochs.back().test_accuracy = NAN;  // not every epoch is evaluated
  EXPECT_EQ(WatchTitle(run), "epoch 5/20, 83.33 % - a-name-of-some-length");
  run.state = {RunState::kStopped, "SIGINT", false};
  EXPECT_EQ(WatchStatus(run, 1001).find(" left"), std::string::npos);
  EXPECT_EQ(WatchTitle(run), "stopped by SIGINT, 83.33 % - a-name-of-some-length");
}

TEST(WatchView, FitsTheTerminalWithALineForTheCursor) {
  RunData run = SomeRun();
  run.problems = {std::string(300, 'x')};
  for (const auto& [width, height] : {std::pair{80, 24}, {120, 40}, {40, 12}, {30, 3}}) {
    SCOPED_TRACE(width);
    const auto lines = Split(WatchView(run, 1001, {width, height, true}), '\n');
    EXPECT_LE(lines.size(), size_t(height));  // the last one is empty
    for (const std::string& line : lines) EXPECT_LE(Columns(line), size_t(width)) << line;
  }
  const std::string view = WatchView(run, 1001, {80, 24, true});
  EXPECT_NE(view.find("101,883 samples/s"), std::string::npos) << view;
  EXPECT_NE(view.find("u update"), std::string::npos) << view;
}

}  // namespace
}  // namespace trireme
