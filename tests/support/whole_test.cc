#include "support/whole_test.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/text.h"

namespace trireme::whole {
namespace {

std::string Line(const Words& words) {
  std::string line = "trireme";
  for (const std::string& word : words) line += " " + word;
  return line;
}

}  // namespace

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Words With(Words words, const Words& changed) {
  const auto name = [](const Words& pairs, size_t i) {  // --batch, or --set trainer.batch
    return pairs[i] == "--set" ? "--set " + pairs[i + 1].substr(0, pairs[i + 1].find('='))
                               : pairs[i];
  };
  for (size_t i = 0; i + 1 < changed.size(); ++i) {
    if (!changed[i].starts_with("--") || changed[i + 1].starts_with("--")) continue;
    for (size_t k = 0; k + 1 < words.size(); ++k) {
      if (name(words, k) != name(changed, i)) continue;
      words.erase(words.begin() + long(k), words.begin() + long(k) + 2);
      break;
    }
  }
  return words + changed;
}

int Wanted(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? ParseNumber<int>(text).value_or(otherwise) : otherwise;
}

std::string SeedText(int seed) {
  return "TRIREME_SEED=" + std::to_string(seed) + " in the environment draws the same again";
}

void SleepFor(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

WholeTest::WholeTest(bool sees_cards) {
  if (!sees_cards) setenv("CUDA_VISIBLE_DEVICES", "", 1);
}

void WholeTest::Write(const std::string& name, const std::string& content) {
  MakeDirectories(std::filesystem::path(At(name)).parent_path());
  ReplaceFile(At(name), content);
}

std::unique_ptr<Running> WholeTest::Start(const Words& words, const Words& launcher) {
  return std::make_unique<Running>(words, folder_.path(), launcher);
}

Outcome WholeTest::Run(const Words& words, double timeout_s, const Words& launcher) {
  const Outcome outcome = Start(words, launcher)->Wait(timeout_s);
  EXPECT_TRUE(outcome.in_time) << Line(words) << "\nhangs\n" << outcome.err;
  EXPECT_TRUE(outcome.signal == 0 || !outcome.in_time)
      << Line(words) << "\ndied of signal " << outcome.signal << "\n"
      << outcome.err;
  // Words of a bug, not of a message for a user.
  EXPECT_EQ(outcome.err.find("error: unexpected:"), std::string::npos)
      << Line(words) << outcome.err;
  return outcome;
}

Outcome WholeTest::Succeed(const Words& words, const Words& launcher) {
  const Outcome outcome = Run(words, kTimeout, launcher);
  EXPECT_EQ(outcome.exit_code, 0) << Line(words) << "\n" << outcome.err;
  return outcome;
}

void WholeTest::Refuse(const Words& words, int code, std::initializer_list<std::string> parts) {
  SCOPED_TRACE(Line(words));
  const Outcome outcome = Run(words);
  EXPECT_EQ(outcome.exit_code, code) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  for (const std::string& part : parts) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " is not in: " << outcome.err;
  }
  int lines = 0;
  for (const std::string& line : Split(outcome.err, '\n')) {
    lines += !line.empty() && !line.starts_with("trireme: try:");
  }
  EXPECT_EQ(lines, 1) << outcome.err;
}

std::string WholeTest::Shell(const std::string& command) {
  const std::string line = "exec 2>&1; cd " + folder_.path() + " && " + command;
  FILE* pipe = popen(line.c_str(), "r");
  if (!pipe) throw Error("the shell does not start");
  std::string text;
  for (int c; (c = std::fgetc(pipe)) != EOF;) text += char(c);
  EXPECT_EQ(pclose(pipe), 0) << command << "\n" << text;
  return text;
}

Json WholeTest::Summary(const std::string& run) const {
  return ParseJson(Read(run + "/summary.json"), run);
}

std::string WholeTest::Hash(const std::string& run) const {
  return Summary(run).At("parameters_sha256").AsString();
}

double WholeTest::Number(const std::string& run, const std::string& key) const {
  return Summary(run).At(key).AsDouble();
}

std::vector<Json> WholeTest::Epochs(const std::string& run) const {
  std::vector<Json> epochs;
  for (const std::string& line : Split(Read(run + "/metrics.jsonl"), '\n')) {
    if (line.empty()) continue;
    Json record = ParseJson(line, run + "/metrics.jsonl");
    if (record.At("event").AsString() == "epoch") epochs.push_back(std::move(record));
  }
  return epochs;
}

std::string WholeTest::Latest(const std::string& run) const {
  const std::string link = At(run + "/checkpoints/latest");
  return run + "/checkpoints/" + std::filesystem::read_symlink(link).string();
}

bool WholeTest::IsRun(const std::string& run) const { return Exists(At(run + "/config.toml")); }
bool WholeTest::IsDone(const std::string& run) const { return Exists(At(run + "/summary.json")); }

bool WholeTest::AwaitStep(Running& running, const std::string& run, int64_t step) {
  for (const Stopwatch watch; watch.seconds() < kTimeout;) {
    const bool over = running.Over();
    if (Exists(At(run + "/checkpoints/latest"))) {
      const std::string name = std::filesystem::path(Latest(run)).filename();
      if (ParseNumber<int64_t>(name.substr(5)).value_or(0) >= step) return !over;
    }
    if (over) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

bool WholeTest::AwaitWords(Running& running, const std::string& words) {
  for (const Stopwatch watch; watch.seconds() < kTimeout;) {
    const bool over = running.Over();
    if (running.err().find(words) != std::string::npos) return true;
    if (over) return false;
    SleepFor(0.01);
  }
  return false;
}

}  // namespace trireme::whole
