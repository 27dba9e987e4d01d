#include "cli/run_list.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace trireme {
namespace {

class RunListTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ / name;
    MakeDirectories(path.substr(0, path.rfind('/')));
    ReplaceFile(path, text);
  }
  void AddRun(const std::string& name, const std::string& started, double accuracy) {
    Write(name + "/config.toml",
          "[data]\nsource = \"iris\"\n[model]\nname = \"mlp:4-3\"\n[strategy]\nname = "
          "\"allreduce\"\n[transport]\nranks = 2\n");
    Write(name + "/metrics.jsonl",
          "{\"event\":\"epoch\",\"epoch\":1,\"step\":5,\"test_accuracy\":0.95}\n"
          "{\"event\":\"epoch\",\"epoch\":2,\"step\":10}\n");
    Write(name + "/starts.jsonl",
          started.empty() ? "{}\n" : "{\"started_at\":\"" + started + "\"}\n");
    Json summary = Json::Object();
    Write(name + "/summary.json", summary.Add("test_accuracy", accuracy).Text());
  }
  TemporaryDirectory folder_;
};

TEST_F(RunListTest, TheNewestComesFirstAndStudiesAreCounted) {
  AddRun("runs/a", "2026-01-31T10:44:00.123Z", 0.9);
  AddRun("runs/b", "2026-01-31T11:50:00+01:00", 0.91);  // ten minutes to eleven
  AddRun("runs/sweep/runs/c000-r1", "2025-01-01T00:00:00Z", 0.5);
  AddRun("runs/sweep/runs/c001-r1", "2025-01-02T00:00:00Z", 0.97);
  Write("runs/sweep/plan.json", "{}");
  Write("runs/notes/x.txt", "");
  const auto runs = FindRuns(folder_ / "runs");
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_TRUE(runs[0].path.ends_with("runs/b"));
  EXPECT_EQ(runs[0].started - runs[1].started, 6 * 60);
  EXPECT_EQ(runs[0].data, "iris");
  EXPECT_EQ(runs[0].model, "mlp:4-3");
  EXPECT_EQ(runs[0].ranks, 2);
  EXPECT_EQ(runs[0].epochs, 2);
  EXPECT_EQ(runs[0].accuracy, 0.91);
  EXPECT_EQ(runs[0].best, 0.95);
  EXPECT_EQ(runs[0].state, "done");
  EXPECT_EQ(runs[2].runs, 2);
  EXPECT_EQ(runs[2].accuracy, 0.97);
  EXPECT_EQ(FindRuns(folder_ / "runs/sweep").size(), 2u);
  EXPECT_EQ(FindRuns(folder_ / "runs/a").size(), 1u);
  EXPECT_THROW(FindRuns(folder_ / "nowhere"), UsageError);
  const auto lines = Split(RunTable(runs, false), '\n');
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_NE(lines[1].find("iris  mlp:4-3  allreduce x 2       2   91.00 %  95.00 %  done"),
            std::string::npos)
      << lines[1];
  EXPECT_NE(RunTable(runs, true).find("\x1b["), std::string::npos);
  EXPECT_EQ(RunListJson(runs).Items()[2].At("runs").AsInt(), 2);
}

TEST_F(RunListTest, RunsThatSayLittleAreListed) {
  AddRun("runs/old", "", 0.9);
  Write("runs/only-config/config.toml", "nonsense");
  Write("runs/\x1b[2J/metrics.jsonl", "");
  const auto runs = FindRuns(folder_ / "runs");
  ASSERT_EQ(runs.size(), 3u);
  for (const ListedRun& run : runs) EXPECT_GT(run.started, 0);
  EXPECT_EQ(RunTable(runs, false).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace trireme
