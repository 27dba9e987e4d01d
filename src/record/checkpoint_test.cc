#include "record/checkpoint.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <functional>
#include <limits>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "record/checkpoint_folder.h"
#include "record/parameters_hash.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kShape[] = {50, 60};

// Content that tells its step from every part.
void Save(CheckpointStore& store, int64_t step, float mark = 0, std::optional<int64_t> best = {}) {
  const auto writer = store.Begin(step, {{"format", "pt"}});
  std::vector<float> values(3000, static_cast<float>(step) + mark);
  writer->model().Tensor("fc.weight", kShape, values);
  for (float& value : values) value += 1;
  writer->state().Tensor("velocity", kShape, values);
  writer->state().Int("position", step * 32);
  writer->Commit(best);
}

// The step, if everything belongs to it; -1 otherwise.
int64_t StepThatMatches(const Checkpoint& checkpoint, float mark = 0) {
  std::vector<float> values(3000);
  checkpoint.model().Tensor("fc.weight", kShape, values);
  const auto expected = static_cast<float>(checkpoint.step()) + mark;
  for (const float value : values) {
    if (value != expected) return -1;
  }
  checkpoint.state().Tensor("velocity", kShape, values);
  for (const float value : values) {
    if (value != expected + 1) return -1;
  }
  return checkpoint.state().Int("position") == checkpoint.step() * 32 ? checkpoint.step() : -1;
}

void Damage(const std::string& path, const std::function<void(std::string&)>& change) {
  std::string content = ReadFile(path);
  change(content);
  OutputFile file(path);
  file.Write(content);
  file.Close();
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

class CheckpointTest : public testing::Test {
 protected:
  std::string MessageOf(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  TemporaryDirectory folder_;
  std::string path_ = folder_ / "checkpoints";
};

TEST_F(CheckpointTest, EverythingComesBack) {
  EXPECT_FALSE(OpenLatestCheckpoint(path_).has_value());
  CheckpointStore store(path_, 2);
  EXPECT_FALSE(OpenLatestCheckpoint(path_).has_value());
  const auto writer = store.Begin(7);
  const std::vector<float> values = {1, 2, NAN};
  const int64_t three[] = {3};
  writer->model().Tensor("bn.running_mean", three, values);
  writer->state().Int("epoch", -3);
  writer->state().Ints("leases", std::vector<int64_t>{1, 2, INT64_MAX});
  writer->state().Real("best", std::numeric_limits<double>::infinity());
  writer->state().Real("rate", 0.1);
  writer->state().Real("whole", 2);
  writer->state().Text("strategy", "easgd \"x\"");
  EXPECT_THROW(writer->state().Int("epoch", 4), Error);
  EXPECT_EQ(writer->Commit(), path_ + "/step-00000007");

  const auto found = OpenLatestCheckpoint(path_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->warning, "");
  EXPECT_EQ(found->checkpoint.step(), 7);
  const StateReader& model = found->checkpoint.model();
  const StateReader& state = found->checkpoint.state();
  std::vector<float> back(3);
  model.Tensor("bn.running_mean", three, back);
  EXPECT_TRUE(back[1] == 2 && std::isnan(back[2]));
  EXPECT_EQ(model.TensorNames(), std::vector<std::string>{"bn.running_mean"});
  EXPECT_EQ(state.Int("epoch"), -3);
  EXPECT_EQ(state.Ints("leases"), (std::vector<int64_t>{1, 2, INT64_MAX}));
  EXPECT_EQ(state.Real("best"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(state.Real("rate"), 0.1);
  EXPECT_EQ(state.Real("whole"), 2);
  EXPECT_EQ(state.Text("strategy"), "easgd \"x\"");
  EXPECT_TRUE(state.Has("rate") && model.Has("bn.running_mean") && !state.Has("bn.running_mean"));

  const int64_t other[] = {3, 1};
  EXPECT_NE(MessageOf([&] {
              model.Tensor("bn.running_mean", other, back);
            }).find("has shape [3]; expected [3, 1]"),
            std::string::npos);
  EXPECT_THROW(model.Shape("bn"), Error);
  EXPECT_THROW(state.Int("rate"), Error);
  EXPECT_THROW(state.Real("none"), Error);
}

TEST_F(CheckpointTest, TheParametersHashIsThatOfTheDataInTheFile) {
  const std::vector<float> a = {1, 2, 3}, b = {-0.0f, NAN};
  const auto save = [&](StateWriter& writer) {
    writer.Tensor("a", std::vector<int64_t>{3}, a);
    writer.Tensor("b", std::vector<int64_t>{1, 2}, b);
    writer.Int("ignored", 1);
  };
  ParametersHash hash;
  save(hash);
  CheckpointStore store(path_, 1);
  const auto writer = store.Begin(0);
  save(writer->model());
  const std::string file = ReadFile(writer->Commit() + "/model.safetensors");
  EXPECT_EQ(hash.Hex(), Sha256Hex(file.substr(file.size() - 20)));
}

TEST_F(CheckpointTest, OldOnesGoAndTheLatestStays) {
  CheckpointStore store(path_, 2);
  for (const int64_t step : {20, 40, 60}) Save(store, step);
  EXPECT_EQ(NamesIn(path_), (std::vector<std::string>{"latest", "step-00000040", "step-00000060"}));
  EXPECT_EQ(fs::read_symlink(path_ + "/latest"), "step-00000060");
  Save(store, 50);  // went back to 40: what came after it belongs to no run any more
  EXPECT_EQ(NamesIn(path_), (std::vector<std::string>{"latest", "step-00000040", "step-00000050"}));
  EXPECT_THROW(CheckpointStore(path_, 0), UsageError);
}

TEST_F(CheckpointTest, TheBestStaysHoweverOld) {
  CheckpointStore store(path_, 2);
  for (const int64_t step : {20, 40, 60, 80}) Save(store, step, 0, 20);
  EXPECT_EQ(NamesIn(path_), (std::vector<std::string>{"best", "latest", "step-00000020",
                                                      "step-00000060", "step-00000080"}));
  EXPECT_EQ(fs::read_symlink(path_ + "/best"), "step-00000020");
  EXPECT_EQ(fs::read_symlink(path_ + "/latest"), "step-00000080");
  Save(store, 100, 0, 100);
  EXPECT_EQ(NamesIn(path_),
            (std::vector<std::string>{"best", "latest", "step-00000080", "step-00000100"}));
  Save(store, 120, 0, 100);
  Save(store, 140, 0, 100);
  store.ReturnTo(100);
  EXPECT_EQ(fs::read_symlink(path_ + "/latest"), "step-00000100");
  EXPECT_EQ(NamesIn(path_), (std::vector<std::string>{"best", "latest", "step-00000100"}));
  Save(store, 120, 0, 7);  // which is not there: the link stays
  EXPECT_EQ(fs::read_symlink(path_ + "/best"), "step-00000100");
  store.SetBest(120);
  EXPECT_EQ(fs::read_symlink(path_ + "/best"), "step-00000120");
}

// Killed after the checkpoint was there and before the link was switched, or gone back to an older
// checkpoint: the run knows its best.
TEST_F(CheckpointTest, TheBestIsWhatTheRunSays) {
  {
    CheckpointStore store(path_, 2);
    Save(store, 20, 0, 20);
    Save(store, 40, 0, 20);
  }
  { const CheckpointStore store(path_, 2, 40); }
  EXPECT_EQ(OpenCheckpoint(path_, "best")->checkpoint.step(), 40);
  { const CheckpointStore store(path_, 2, 60); }
  EXPECT_FALSE(HasBestCheckpoint(path_));
  { const CheckpointStore store(path_, 2, 20); }
  EXPECT_EQ(OpenCheckpoint(path_, "best")->checkpoint.step(), 20);
  { const CheckpointStore store(path_, 2); }
  EXPECT_EQ(NamesIn(path_), (std::vector<std::string>{"latest", "step-00000020", "step-00000040"}));
}

TEST_F(CheckpointTest, AUserNamesOne) {
  EXPECT_FALSE(OpenCheckpoint(path_, "best").has_value());
  CheckpointStore store(path_, 3);
  Save(store, 20);
  EXPECT_THROW(OpenCheckpoint(path_, "best"), UsageError);
  Save(store, 40, 0, 20);
  EXPECT_EQ(StepThatMatches(OpenCheckpoint(path_, "best")->checkpoint), 20);
  EXPECT_EQ(StepThatMatches(OpenCheckpoint(path_, "last")->checkpoint), 40);
  EXPECT_EQ(StepThatMatches(OpenCheckpoint(path_, "20")->checkpoint), 20);
  EXPECT_EQ(StepThatMatches(OpenCheckpoint(path_, "40")->checkpoint), 40);
  for (const char* none : {"30", "-20", "better", ""}) {
    const std::string message = MessageOf([&] { OpenCheckpoint(path_, none); });
    EXPECT_NE(message.find("steps 20 (best), 40 (last)"), std::string::npos) << message;
  }
  fs::remove(path_ + "/step-00000020/model.safetensors");
  EXPECT_THROW(OpenCheckpoint(path_, "best"), Error);  // and no other in its place
}

TEST_F(CheckpointTest, AFolderThatWasRemovedWithTheRunIsNotMadeAgain) {
  fs::create_directory(folder_ / "run");
  const std::string path = folder_ / "run/checkpoints";
  CheckpointStore store(path, 2);
  Save(store, 20);
  fs::remove_all(path);  // only it: the run is still there
  Save(store, 40);
  EXPECT_EQ(OpenLatestCheckpoint(path)->checkpoint.step(), 40);
  fs::remove_all(folder_ / "run");
  EXPECT_THROW(Save(store, 60), Error);
  EXPECT_FALSE(Exists(folder_ / "run"));
}

TEST_F(CheckpointTest, TheSameStepCanBeWrittenAgain) {
  CheckpointStore store(path_, 2);
  Save(store, 20);
  Save(store, 20, 0.5f);
  EXPECT_EQ(StepThatMatches(OpenLatestCheckpoint(path_)->checkpoint, 0.5f), 20);
  EXPECT_EQ(NamesIn(path_), (std::vector<std::string>{"latest", "step-00000020"}));
}

TEST_F(CheckpointTest, WhatAKilledWriterLeftIsCleaned) {
  {
    CheckpointStore store(path_, 2);
    Save(store, 20);
    Save(store, 40);
    const auto given_up = store.Begin(60);
  }
  EXPECT_EQ(NamesIn(path_).size(), 3u) << "a writer without Commit leaves nothing";
  // Killed while writing step 60 and, on a file system that cannot exchange names, replacing 40.
  MakeDirectories(NameBeside(path_ + "/step-00000060"));
  fs::rename(path_ + "/step-00000040", path_ + "/.step-00000040.replaced");
  EXPECT_EQ(OpenLatestCheckpoint(path_)->checkpoint.step(), 20);
  const CheckpointStore store(path_, 2);
  EXPECT_EQ(NamesIn(path_), (std::vector<std::string>{"latest", "step-00000020", "step-00000040"}));
  EXPECT_EQ(StepThatMatches(OpenLatestCheckpoint(path_)->checkpoint), 40);
}

TEST_F(CheckpointTest, ADamagedOneIsNamedAndThePreviousTaken) {
  const auto flip = [](std::string& content) { content[content.size() - 100] ^= 1; };
  const auto cut = [](std::string& content) { content.resize(content.size() / 2); };
  const auto empty = [](std::string& content) { content.clear(); };
  const auto value = [](std::string& content) { content.replace(content.find("1280"), 4, "1281"); };
  const std::string latest = path_ + "/step-00000040/";
  const std::vector<std::pair<std::string, std::function<void(std::string&)>>> damages = {
      {"model.safetensors", flip}, {"optimizer.safetensors", cut}, {"state.json", cut},
      {"state.json", empty},       {"state.json", value},          {"model.safetensors", empty}};
  for (const auto& [name, change] : damages) {
    CheckpointStore store(path_, 2);
    Save(store, 20);
    Save(store, 40);
    Damage(latest + name, change);
    const auto found = OpenLatestCheckpoint(path_);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(StepThatMatches(found->checkpoint), 20);
    EXPECT_EQ(found->warning.rfind(latest + name + ": ", 0), 0u) << found->warning;
    EXPECT_NE(found->warning.find("going back to step 20"), std::string::npos);
    EXPECT_THROW(Checkpoint checkpoint(latest), Error);
  }
  fs::remove(path_ + "/step-00000020/model.safetensors");
  const std::string message = MessageOf([&] { OpenLatestCheckpoint(path_); });
  EXPECT_NE(message.find("no checkpoint can be read"), std::string::npos) << message;
}

// Whoever changes a state also knows how to hash it: the values themselves must not crash us.
TEST_F(CheckpointTest, MutatedStatesAreReadOrRefused) {
  CheckpointStore store(path_, 1);
  Save(store, 40);
  const std::string path = path_ + "/step-00000040/state.json";
  const std::string original = ReadFile(path);
  std::mt19937 random(2);
  const std::string alphabet = "0123456789{}[]\",:-e.\\ x";
  int parsed = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string content = original;
    for (int times = 1 + static_cast<int>(random() % 2); times > 0; --times) {
      const size_t at = random() % content.size();
      if (random() % 2 == 0) content[at] = alphabet[random() % alphabet.size()];
      if (random() % 4 == 0) content.erase(at, 1 + random() % 60);
      if (random() % 4 == 0) content.insert(at, 1, alphabet[random() % alphabet.size()]);
    }
    try {
      Json state = Json::Object();
      const Json changed = ParseJson(content, "t");
      for (const auto& [key, value] : changed.Members()) {
        if (key != "sha256") state.AddNew(key, value);
      }
      state.Add("sha256", Sha256Hex(state.Text()));
      content = state.Text();
      ++parsed;
    } catch (const Error&) {
    }
    fs::remove(path);
    OutputFile file(path);
    file.Write(content);
    file.Close();
    try {
      const Checkpoint checkpoint(path_ + "/step-00000040");
      StepThatMatches(checkpoint);
    } catch (const Error&) {
    }
  }
  EXPECT_GT(parsed, 300);
}

TEST_F(CheckpointTest, ALinkThatPointsElsewhereIsNotFollowed) {
  CheckpointStore store(path_, 2);
  Save(store, 20);
  for (const char* target :
       {"/etc", "step-00000099", "../x", "step-", "step-99999999999999999999"}) {
    fs::remove(path_ + "/latest");
    fs::create_symlink(target, path_ + "/latest");
    EXPECT_EQ(StepThatMatches(OpenLatestCheckpoint(path_)->checkpoint), 20) << target;
  }
}

// Killed at 60 random moments, the writer leaves a good checkpoint that is never older than the one
// before; the next writer finds its folder clean. The writer says when it begins and after each
// checkpoint, so that a kill falls into its first, second or third one however slow the machine is.
TEST_F(CheckpointTest, SurvivesKillsAtAnyMoment) {
  using Clock = std::chrono::steady_clock;
  CheckpointStore other(folder_ / "other", 2);
  const auto begin = Clock::now();
  for (int64_t i = 0; i < 10; ++i) Save(other, i);
  const auto one = (Clock::now() - begin) / 10;  // disks differ

  std::mt19937 random(3);
  int64_t step = 0;
  for (int kills = 0; kills < 60; ++kills) {
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      CheckpointStore store(path_, 2, step - step % 4);
      for (int64_t next = step;; ++next) {
        if (write(pipe_ends[1], "", 1) != 1) _exit(1);
        Save(store, next, 0, next - next % 4);  // begins with a rewrite of the latest
      }
    }
    close(pipe_ends[1]);
    for (int word = 0; word <= kills % 3; ++word) {
      char c;
      ASSERT_EQ(read(pipe_ends[0], &c, 1), 1) << "the writer failed by itself";
    }
    std::this_thread::sleep_for(one / 1000 * (random() % 1000));
    kill(child, SIGKILL);
    close(pipe_ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer failed by itself";
    const auto found = OpenLatestCheckpoint(path_);
    if (!found.has_value() && step == 0) continue;
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->warning, "");
    const int64_t now = StepThatMatches(found->checkpoint);
    ASSERT_GE(now, step);
    step = now;
    if (step == 0 && !HasBestCheckpoint(path_)) continue;  // before its first switch
    // Of this step or, not yet switched, of the one before.
    const int64_t best = StepThatMatches(OpenCheckpoint(path_, "best")->checkpoint);
    const int64_t wanted = step - step % 4;
    ASSERT_TRUE(best == wanted || best == std::max<int64_t>(0, wanted - 4)) << best << " " << step;
  }
  EXPECT_GE(step, 19);  // every third writer went on by one or more
  const CheckpointStore store(path_, 2, step - step % 4);
  EXPECT_EQ(OpenCheckpoint(path_, "best")->checkpoint.step(), step - step % 4);
  for (const std::string& name : NamesIn(path_)) {
    EXPECT_TRUE(name == "latest" || name == "best" || StepOf(name).has_value()) << name;
  }
}

// While a run writes and prunes, somebody evaluates it.
TEST_F(CheckpointTest, CanBeReadWhileBeingWritten) {
  CheckpointStore store(path_, 1);
  Save(store, 0);
  std::jthread writer([&](std::stop_token stop) {
    for (int64_t step = 1; !stop.stop_requested(); ++step) Save(store, step);
  });
  for (int64_t last = 0; last < 50;) {
    const auto found = OpenLatestCheckpoint(path_);
    ASSERT_TRUE(found.has_value());
    const int64_t step = StepThatMatches(found->checkpoint);
    ASSERT_GE(step, last);
    last = step;
  }
}

// 0: passed, 1: failed, 2: no file system could be mounted.
int WriteToAFullDisk(const std::string& mount_point) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 2;
  mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  if (mount("tmpfs", mount_point.c_str(), "tmpfs", 0, "size=128k") != 0) return 2;
  const std::string path = mount_point + "/checkpoints";
  CheckpointStore store(path, 2);
  int64_t step = 0;
  std::string message;
  try {
    for (; step < 10; ++step) Save(store, step);  // 32 KB each, three at a time
    OutputFile filler(mount_point + "/filler");
    for (;;) filler.Write(std::string(4096, 'x'));
  } catch (const Error&) {
  }
  try {
    Save(store, step);
  } catch (const Error& error) {
    message = error.what();
  }
  const bool named = message.find("No space left on device") != std::string::npos;
  const auto found = OpenLatestCheckpoint(path);
  const bool kept = found.has_value() && StepThatMatches(found->checkpoint) == step - 1;
  const bool clean = NamesIn(path).size() == 3;
  if (!named || !kept || !clean) std::fprintf(stderr, "%d %d %s\n", kept, clean, message.c_str());
  return named && kept && clean ? 0 : 1;
}

TEST_F(CheckpointTest, AFullDiskLeavesTheLastGoodOne) {
  const pid_t child = fork();
  if (child == 0) _exit(WriteToAFullDisk(folder_.path()));
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "a small tmpfs cannot be mounted here";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace trireme
