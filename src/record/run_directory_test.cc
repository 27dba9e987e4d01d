#include "record/run_directory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "base/error.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

std::string MessageOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return std::string("usage: ") + error.what();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Json Line(int64_t step) {
  Json line = Json::Object();
  line.Add("step", step).Add("loss", 0.5);
  return line;
}

std::vector<int64_t> StepsIn(const std::string& path) {
  std::vector<int64_t> steps;
  const std::string content = ReadFile(path + "/metrics.jsonl");
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = content.find('\n', begin);
    steps.push_back(ParseJson(content.substr(begin, end - begin), "t").At("step").AsInt());
    begin = end + 1;
  }
  return steps;
}

class RunDirectoryTest : public testing::Test {
 protected:
  TemporaryDirectory folder_;
  std::string path_ = folder_ / "runs/a";
};

TEST_F(RunDirectoryTest, AFolderThatIsNoLongerThereIsNoticedBeforeItIsWrittenTo) {
  const std::string other = folder_ / "runs/b";
  RunDirectory run = RunDirectory::Create(path_, "x = 1\n");
  run.AppendMetrics(Line(1));
  const auto refuses = [&] {
    const std::function<void()> writes[] = {
        [&] { run.CheckThere(); },           [&] { run.AppendMetrics(Line(2)); },
        [&] { run.SyncMetrics(); },          [&] { run.WriteSummary(Json::Object()); },
        [&] { run.WriteConfig("y = 1\n"); }, [&] { run.AppendStart(Json::Object()); }};
    for (const auto& write : writes) {
      const std::string message = MessageOf(write);
      EXPECT_NE(message.find("removed, moved or replaced"), std::string::npos) << message;
    }
  };
  fs::rename(path_, other);
  refuses();
  EXPECT_FALSE(Exists(path_));
  EXPECT_EQ(StepsIn(other), std::vector<int64_t>{1});

  fs::copy(other, path_, fs::copy_options::recursive);  // as a run that looks the same
  refuses();
  EXPECT_EQ(StepsIn(path_), std::vector<int64_t>{1});

  fs::remove_all(path_);
  fs::rename(other, path_);
  run.AppendMetrics(Line(2));
  EXPECT_EQ(StepsIn(path_), (std::vector<int64_t>{1, 2}));

  fs::remove_all(path_);
  refuses();
  EXPECT_FALSE(Exists(path_));
}

TEST_F(RunDirectoryTest, TheLineOfAPartOfAnEpochGoesWhenTheRunGoesOn) {
  RunDirectory run = RunDirectory::Create(path_, "");
  for (const auto& [step, epoch] : {std::pair(15, 1.0), {20, 1.0}, {22, 22 / 15.0}}) {
    run.AppendMetrics(Line(step).Add("epoch", epoch));
  }
  run.DropMetricsAfter(22);
  EXPECT_EQ(StepsIn(path_), (std::vector<int64_t>{15, 20}));
}

TEST_F(RunDirectoryTest, StartsAndStopsHaveTheirTimes) {
  RunDirectory run = RunDirectory::Create(path_, "");
  EXPECT_EQ(run.started_at(), "");
  run.AppendStart(Json::Object().Add("started_at", "2026-01-31T10:44:00.123Z"));
  run.AppendStop(SIGTERM, 45);
  for (int twice = 0; twice < 2; ++twice) {
    run.AppendStart(Json::Object().Add("started_at", "2026-01-31T11:44:00.123Z"));
  }
  EXPECT_EQ(run.started_at(), "2026-01-31T10:44:00.123Z");
  const std::string lines = ReadFile(path_ + "/starts.jsonl");
  EXPECT_NE(lines.find("{\"end\":{\"reason\":\"signal\",\"signal\":15,\"at\":\"20"),
            std::string::npos)
      << lines;
  EXPECT_NE(lines.find("Z\",\"step\":45}}\n"), std::string::npos) << lines;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3) << lines;
}

TEST_F(RunDirectoryTest, HoldsConfigMetricsAndSummary) {
  RunDirectory run = RunDirectory::Create(path_, "[model]\nname = \"mlp\"\n");
  EXPECT_EQ(ReadRunConfig(path_), "[model]\nname = \"mlp\"\n");
  run.AppendMetrics(Line(1));
  run.AppendMetrics(Line(2));
  EXPECT_EQ(ReadFile(path_ + "/metrics.jsonl"),
            "{\"step\":1,\"loss\":0.5}\n{\"step\":2,\"loss\":0.5}\n")
      << "a line is there as soon as it was appended";
  Json summary = Json::Object();
  summary.Add("steps", 2);
  run.WriteSummary(summary);
  EXPECT_EQ(ParseJson(ReadFile(path_ + "/summary.json"), "t").At("steps").AsInt(), 2);
  run.WriteConfig("other");
  EXPECT_EQ(ReadRunConfig(path_), "other");
}

TEST_F(RunDirectoryTest, AnExistingRunIsRefusedWithTheWayOut) {
  { RunDirectory::Create(path_, "a"); }
  const std::string message = MessageOf([&] { RunDirectory::Create(path_, "b"); });
  EXPECT_EQ(message, "usage: " + path_ + ": is already a run; continue it with --resume " + path_ +
                         ", or give a different --out");
  EXPECT_EQ(ReadRunConfig(path_), "a");
}

TEST_F(RunDirectoryTest, FoldersOfOthersAreLeftAlone) {
  ReplaceFile(folder_ / "thesis.tex", "x");
  EXPECT_NE(MessageOf([&] { RunDirectory::Create(folder_.path(), ""); }).find("thesis.tex"),
            std::string::npos);
  EXPECT_FALSE(Exists(folder_ / ".lock"));
  EXPECT_NE(MessageOf([&] { RunDirectory::Create(folder_ / "thesis.tex", ""); }), "no error");
  EXPECT_NE(MessageOf([&] { RunDirectory::Resume(folder_.path()); }).find("is not a run"),
            std::string::npos);
  EXPECT_NE(MessageOf([&] { RunDirectory::Resume(folder_ / "none"); }).find("is not a run"),
            std::string::npos);
}

TEST_F(RunDirectoryTest, WhatWasKilledBeforeItsConfigCanBeCreatedAgain) {
  MakeDirectories(path_);
  OutputFile(path_ + "/.lock").Write("");
  OutputFile(NameBeside(path_ + "/config.toml")).Write("ha");
  RunDirectory::Create(path_, "b");
  EXPECT_EQ(ReadRunConfig(path_), "b");
}

TEST_F(RunDirectoryTest, TwoProcessesCannotWriteToOneRun) {
  { RunDirectory::Create(path_, "a"); }
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const RunDirectory run = RunDirectory::Resume(path_);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char got;
  ASSERT_EQ(read(ready[0], &got, 1), 1);
  EXPECT_EQ(MessageOf([&] { RunDirectory::Resume(path_); }),
            path_ + ": another process is writing to this run");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(MessageOf([&] { RunDirectory::Resume(path_); }), "no error");
  close(ready[0]);
  close(ready[1]);
}

TEST_F(RunDirectoryTest, AResumedRunCountsNothingTwice) {
  {
    RunDirectory run = RunDirectory::Create(path_, "a");
    for (int64_t step = 10; step <= 50; step += 10) run.AppendMetrics(Line(step));
    Json note = Json::Object();
    run.AppendMetrics(note.Add("step", 20).Add("event", "epoch"));
    OutputFile(path_ + "/metrics.jsonl", OutputFile::Start::kAtEnd).Write("{\"step\":20,\"lo");
  }
  RunDirectory run = RunDirectory::Resume(path_);
  run.DropMetricsAfter(30);
  EXPECT_EQ(StepsIn(path_), (std::vector<int64_t>{10, 20, 30, 20}));
  run.AppendMetrics(Line(40));
  run.DropMetricsAfter(40);  // nothing to drop
  run.AppendMetrics(Line(50));
  EXPECT_EQ(StepsIn(path_), (std::vector<int64_t>{10, 20, 30, 20, 40, 50}));
  run.DropMetricsAfter(0);
  EXPECT_EQ(StepsIn(path_), std::vector<int64_t>{});
}

TEST_F(RunDirectoryTest, LinesThatADiskSpoiledAreDropped) {
  RunDirectory run = RunDirectory::Create(path_, "a");
  const std::string zeros(20, '\0');
  OutputFile(path_ + "/metrics.jsonl", OutputFile::Start::kAtEnd)
      .Write("{\"step\":1}\n" + zeros + "\n[]\n\n{\"step\":\"x\"}\n{\"step\":2}\n");
  run.DropMetricsAfter(9);
  EXPECT_EQ(StepsIn(path_), (std::vector<int64_t>{1, 2}));
}

TEST_F(RunDirectoryTest, NamesAreReadableAndUnique) {
  setenv("TZ", "UTC", 1);
  tzset();
  const std::time_t now = 1769856240;
  const auto one = RunDirectory::CreateNamed(folder_ / "runs", "fashion cnn/x", "", now);
  const auto two = RunDirectory::CreateNamed(folder_ / "runs", "fashion cnn/x", "", now);
  const auto three = RunDirectory::CreateNamed(folder_ / "runs", "..", "", now);
  EXPECT_EQ(one.path(), folder_ / "runs/fashion-cnn-x-20260131-104400");
  EXPECT_EQ(two.path(), folder_ / "runs/fashion-cnn-x-20260131-104400-2");
  EXPECT_EQ(three.path(), folder_ / "runs/run-20260131-104400");
}

}  // namespace
}  // namespace trireme
