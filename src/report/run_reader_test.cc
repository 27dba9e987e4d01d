#include "report/run_reader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <random>

#include "base/error.h"
#include "base/files.h"
#include "record/run_lock.h"
#include "report/page/page_html.h"
#include "report/page/run_curves.h"
#include "report/page/run_page.h"

namespace trireme {
namespace {

class RunReaderTest : public testing::Test {
 protected:
  RunReaderTest() {
    Write("config.toml", "[model]\nname = \"mlp:4-3\"\n[trainer]\nepochs = 3\n");
    Write("metrics.jsonl", Epoch(1) + Epoch(2));
  }

  static std::string Epoch(int epoch) {
    EpochRecord record;
    record.epoch = epoch;
    record.step = 10 * epoch;
    record.train_loss = 1.0 / epoch;
    record.test_accuracy = 0.5;
    record.samples_per_second = 100;
    record.seconds = 2;
    record.samples = 200 * epoch;
    record.time = 2 * epoch;
    record.ranks = {{0, {.forward = 1}, 5, 6}, {1, {.forward = 1}, 7, 8}};
    return ToJson(record).Text() + "\n";
  }

  static std::string SummaryText() {
    Summary summary;
    summary.confusion = {{3, 1}, {0, 4}};
    summary.classes = {"a", "<b>"};
    return ToJson(summary).Text(1);
  }

  void Write(const std::string& name, const std::string& text) {
    OutputFile file(folder_ / name);
    file.Write(text);
    file.Close();
  }
  void Append(const std::string& name, const std::string& text) {
    OutputFile file(folder_ / name, OutputFile::Start::kAtEnd);
    file.Write(text);
    file.Close();
  }
  std::string path() const { return folder_.path(); }

  TemporaryDirectory folder_;
};

TEST_F(RunReaderTest, ThePageSaysWhatTheLastEpochSaidOfWaiting) {
  EpochRecord record{.epoch = 3, .step = 30, .seconds = 2};
  record.times = {.data = 1, .forward = 1};
  record.loader = {.threads = 2, .requests = 4, .seconds = 2, .ready_at_take = 6, .ready_s = 3};
  record.input_bound = {.share = 0.5, .stage = "read", .text = "input bound: <half> of it"};
  const Json json = ToJson(record);
  EXPECT_EQ(json.At("loader").At("depth").AsDouble(), 1.5);
  EXPECT_EQ(json.At("loader").At("depth_at_take").AsDouble(), 1.5);
  Append("metrics.jsonl", json.Text() + "\n");
  const RunData data = ReadRun(path());
  ASSERT_EQ(data.epochs.size(), 3u);
  EXPECT_EQ(data.epochs.back().input_bound, "input bound: <half> of it");
  const std::vector<NamedRun> named = {{"mine", &data}};
  const auto charts = TimeCharts(named);
  ASSERT_EQ(charts.size(), 1u);
  EXPECT_NE(std::get<BarChart>(charts[0]).caption.find("input bound: <half> of it"),
            std::string::npos);
}

TEST_F(RunReaderTest, FollowsARunAsItIsWritten) {
  RunReader reader(path());
  EXPECT_TRUE(reader.Poll());
  EXPECT_EQ(reader.data().epochs.size(), 2u);
  EXPECT_FALSE(reader.Poll());
  const std::string next = Epoch(3);
  Append("metrics.jsonl", next.substr(0, 20));
  reader.Poll();
  EXPECT_EQ(reader.data().epochs.size(), 2u);
  EXPECT_TRUE(reader.data().problems.empty());
  Append("metrics.jsonl", next.substr(20));
  EXPECT_TRUE(reader.Poll());
  ASSERT_EQ(reader.data().epochs.size(), 3u);
  EXPECT_EQ(reader.data().epochs[2].step, 30);
  EXPECT_EQ(reader.data().epochs[2].samples, 600);
  EXPECT_EQ(reader.data().epochs[2].bytes, 36);  // three times what both ranks sent
  EXPECT_NE(reader.data().state.kind, RunState::kDone);
  Write("summary.json", SummaryText());
  EXPECT_TRUE(reader.Poll());
  EXPECT_EQ(reader.data().state.kind, RunState::kDone);
}

TEST_F(RunReaderTest, TellsARunThatGoesOnFromOneThatWasStoppedOrKilled) {
  RunReader reader(path());
  const auto state = [&] {
    reader.Poll();
    return StateText(reader.data().state);
  };
  Write("starts.jsonl", "{\"command\":\"trireme train\"}\n");
  EXPECT_EQ(state(), "stopped (killed or failed)");  // an old one: nothing says why
  {
    const RunLock lock(path());
    EXPECT_EQ(state(), "running");
    EXPECT_THROW(RunLock{path()}, Error);  // asking has not taken it away
  }
  EXPECT_EQ(RunLock::IsHeld(path()), false);
  Append("starts.jsonl", "{\"end\":{\"reason\":\"signal\",\"signal\":15,\"step\":20}}\n");
  EXPECT_EQ(state(), "stopped by SIGTERM");
  EXPECT_EQ(reader.data().starts.size(), 1u);  // an end is no start
  Append("starts.jsonl", "{\"command\":\"trireme train --resume\"}\n");
  EXPECT_EQ(state(), "stopped (killed or failed)");
  Append("starts.jsonl", "{\"command\":\"x\",\"host\":\"another-host\"}\n");
  EXPECT_EQ(state(), "running on another-host, or killed there");
  EXPECT_FALSE(reader.data().over());
  Write("summary.json", "{\"end_reason\":\"patience\"}");
  EXPECT_EQ(state(), "done (patience)");
  Write("summary.json", "{\"end_reason\":\"done\"}");
  EXPECT_EQ(state(), "done");
  EXPECT_TRUE(reader.data().over());
}

TEST_F(RunReaderTest, ASummaryOfAnEarlierLifeIsNoEnd) {
  Write("summary.json", "{\"ended_at\":\"2026-01-01T10:00:00Z\"}");
  Write("starts.jsonl",
        "{\"started_at\":\"2026-01-01T09:00:00Z\"}\n{\"started_at\":\"2026-01-01T11:00:00Z\"}\n");
  std::filesystem::last_write_time(
      folder_ / "summary.json",
      std::filesystem::last_write_time(folder_ / "starts.jsonl") - std::chrono::seconds(5));
  EXPECT_EQ(ReadRun(path()).state.kind, RunState::kKilled);
  Write("summary.json", "{\"ended_at\":\"2026-01-01T12:00:00Z\"}");
  std::filesystem::last_write_time(
      folder_ / "summary.json",
      std::filesystem::last_write_time(folder_ / "starts.jsonl") - std::chrono::seconds(5));
  EXPECT_EQ(ReadRun(path()).state.kind, RunState::kDone);  // a copy: its times say nothing
}

TEST_F(RunReaderTest, BeginsAnewWhereAResumeDroppedLines) {
  RunReader reader(path());
  reader.Poll();
  ReplaceFile(folder_ / "metrics.jsonl", Epoch(1));
  EXPECT_TRUE(reader.Poll());
  EXPECT_EQ(reader.data().epochs.size(), 1u);
}

TEST_F(RunReaderTest, TheLastLineHasWhatTheSummarySaysOfTheEnd) {
  Write("metrics.jsonl",
        "{\"event\":\"epoch\",\"epoch\":1,\"step\":5}\n{\"event\":\"epoch\",\"epoch\":2,\"step\":"
        "10}\n");
  Write("summary.json", "{\"steps\":10,\"test_loss\":0.5,\"test_accuracy\":0.75}");
  const RunData run = ReadRun(path());
  EXPECT_TRUE(std::isnan(run.epochs[0].test_loss));
  EXPECT_EQ(run.epochs[1].test_loss, 0.5);
  EXPECT_EQ(run.epochs[1].test_accuracy, 0.75);
  EXPECT_EQ(run.Setting("trainer.epochs"), "3");
  EXPECT_EQ(run.Setting("model.name"), "mlp:4-3");
  EXPECT_EQ(run.Setting("model.nothing"), "");
}

TEST_F(RunReaderTest, ReckonsWhatOlderRunsDoNotSay) {
  Write("metrics.jsonl",
        "{\"event\":\"epoch\",\"epoch\":1,\"step\":5,\"seconds\":2,\"samples_per_second\":10}\n"
        "{\"event\":\"epoch\",\"epoch\":2,\"step\":10,\"seconds\":3,\"samples_per_second\":10}\n");
  const RunData run = ReadRun(path());
  ASSERT_EQ(run.epochs.size(), 2u);
  EXPECT_EQ(run.epochs[1].samples, 50);
  EXPECT_EQ(run.epochs[1].time_s, 5);
}

TEST_F(RunReaderTest, PassesOverWhatIsDamagedAndSaysSo) {
  Append("metrics.jsonl",
         "{\"event\":\n\nnonsense\n[1,2]\n" + std::string(3 << 20, 'x') + "\n" + Epoch(3));
  Write("summary.json", "{\"classes\": 7");
  const RunData run = ReadRun(path());
  EXPECT_EQ(run.epochs.size(), 3u);
  EXPECT_GE(run.problems.size(), 4u);
  EXPECT_FALSE(run.summary);
  EXPECT_NE(PageHtml(RunsPage({&run, 1})).find("summary.json"), std::string::npos);
}

TEST_F(RunReaderTest, AnEmptyRunGivesAPageAndAnEmptyFolderAnError) {
  Write("metrics.jsonl", "");
  const RunData run = ReadRun(path());
  EXPECT_NE(PageHtml(RunsPage({&run, 1})).find("has not written any metrics"), std::string::npos);
  TemporaryDirectory empty;
  EXPECT_THROW(RunReader{empty.path()}, UsageError);
}

TEST_F(RunReaderTest, ManyRunsAreRowsAndTheBestHaveColours) {
  std::vector<RunData> runs(20, ReadRun(path()));
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].name = "run-" + std::to_string(i);
    runs[i].epochs.back().test_accuracy = 0.5 + 0.01 * double(i);
  }
  const Page page = RunsPage(runs);
  EXPECT_EQ(page.title, "20 runs");
  const auto& blocks = page.sections[0].blocks;
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(std::get<Figures>(blocks[0]).figures[0].note, "run-19");
  const auto& table = std::get<PageTable>(blocks[1]);
  EXPECT_TRUE(table.sortable);
  ASSERT_EQ(table.rows.size(), 20u);
  EXPECT_EQ(table.rows[0][0], "run-19");
  EXPECT_EQ(table.rows[0][1], "69.00");
  EXPECT_EQ(table.styles[6], 6);
  EXPECT_EQ(table.styles[7], kOtherStyles + 7);
  const auto& choice = std::get<ChartChoice>(page.sections[1].blocks[0]);
  EXPECT_FALSE(choice.charts[0].own_legend);
}

TEST_F(RunReaderTest, OfFewRunsTheBestValuesStandOut) {
  std::vector<RunData> runs(2, ReadRun(path()));
  runs[0].name = "a";
  runs[1].name = "b";
  runs[0].summary = ParseJson("{\"test_accuracy\":0.9,\"test_loss\":0.4,\"epochs\":2}", "s");
  runs[1].summary = ParseJson("{\"test_accuracy\":0.8,\"test_loss\":0.3,\"epochs\":3}", "s");
  for (RunData& run : runs) run.state.kind = RunState::kDone;
  const Page page = RunsPage(runs);
  const auto& figures = std::get<Figures>(page.sections[0].blocks[0]).figures;
  EXPECT_EQ(figures[0].value, "90.00 %");
  EXPECT_EQ(figures[0].note, "a");
  EXPECT_EQ(figures[1].note, "b");
  const auto& table = std::get<PageTable>(page.sections[0].blocks[1]);
  ASSERT_EQ(table.bold.size(), 2u);  // epochs are neither good nor bad
  EXPECT_EQ(table.bold[0].column, 1u);
  EXPECT_EQ(table.bold[1].column, 2u);
}

TEST_F(RunReaderTest, AnAxisFitsWhatIsDrawn) {
  const auto fit = [](std::vector<double> y, Quantity quantity) {
    Axis axis{"loss", ""};
    const Curve curve{"", CurveKind::kMeasured, y, y, {}, {}};
    FitAxis(axis, {&curve, 1}, quantity);
    return std::pair(axis.logarithmic, axis.from_zero);
  };
  EXPECT_EQ(fit({0.33, 0.36, 0.34}, Quantity::kLoss), std::pair(false, false));
  EXPECT_EQ(fit({2.3, 0.4, 0.2}, Quantity::kLoss), std::pair(false, true));
  EXPECT_EQ(fit({2.3, 0.4, 0.01}, Quantity::kLoss), std::pair(true, false));
  EXPECT_EQ(fit({2.3, 0.4, 0}, Quantity::kLoss), std::pair(false, true));
  EXPECT_EQ(fit({0.1, 0.01, 0.001}, Quantity::kRate), std::pair(true, false));
  EXPECT_EQ(fit({0.1, 0.09, 0.07, 0.05, 0.03, 1e-4}, Quantity::kRate), std::pair(false, true));
}

TEST_F(RunReaderTest, NoDamageOfAnyFileCrashesThePage) {
  const std::string metrics = Epoch(1) + Epoch(2) + Epoch(3), summary = SummaryText();
  std::mt19937 random(11);
  const auto damaged = [&](std::string text) {
    for (int i = 1 + int(random() % 6); i > 0; --i) {
      const size_t at = random() % text.size();
      if (random() % 8 == 0) {
        text.resize(at + 1);
      } else if (random() % 3 == 0) {
        text.insert(at, text.substr(random() % text.size(), random() % 12));
      } else {
        text[at] = "0123456789[]{},:\"-e.nul\xFF\n"[random() % 25];
      }
    }
    return text;
  };
  for (int round = 0; round < 400; ++round) {
    Write("metrics.jsonl", damaged(metrics));
    Write("summary.json", damaged(summary));
    Write("config.toml", damaged("[model]\nname = \"mlp\"\n"));
    Write("starts.jsonl", damaged("{\"command\":\"trireme train\",\"machine\":\"m\"}\n"));
    const RunData run = ReadRun(path());
    EXPECT_FALSE(PageHtml(RunsPage({&run, 1})).empty());
  }
}

}  // namespace
}  // namespace trireme
