#pragma once
#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "record/json.h"
#include "support/program.h"

namespace trireme::whole {

using Words = std::vector<std::string>;

Words operator+(Words a, const Words& b);
// With more flags, or other values of those that are there: a key has one value.
Words With(Words words, const Words& changed);

// A number that the environment sets; `otherwise` where it sets none.
int Wanted(const char* name, int otherwise);

// What a test that draws random numbers says when it fails: SCOPED_TRACE(SeedText(seed)).
std::string SeedText(int seed);
void SleepFor(double seconds);

// Each test has a folder of its own; every command runs in it, on the processor unless the test
// `sees_cards`: a new run would take one.
class WholeTest : public testing::Test {
 protected:
  explicit WholeTest(bool sees_cards = false);

  static constexpr double kTimeout = 600;  // to find what hangs, even on a busy machine

  std::string At(const std::string& name) const { return folder_ / name; }
  void Write(const std::string& name, const std::string& content);
  std::string Read(const std::string& name) const { return ReadFile(At(name)); }

  std::unique_ptr<Running> Start(const Words& words, const Words& launcher = {});
  Outcome Run(const Words& words, double timeout_s = kTimeout, const Words& launcher = {});
  // A failure of the test unless the exit code is 0.
  Outcome Succeed(const Words& words, const Words& launcher = {});
  // Exit code `code`, nothing on the standard output, and an error of one line (besides the hint
  // at --help) that holds all of `parts`.
  void Refuse(const Words& words, int code, std::initializer_list<std::string> parts);

  // What the shell prints, errors too; a failure of the test unless the exit code is 0.
  std::string Shell(const std::string& command);

  Json Summary(const std::string& run) const;
  std::string Hash(const std::string& run) const;                       // parameters_sha256
  double Number(const std::string& run, const std::string& key) const;  // of the summary
  std::vector<Json> Epochs(const std::string& run) const;               // of metrics.jsonl
  std::string Latest(const std::string& run) const;  // its newest checkpoint's folder
  bool IsRun(const std::string& run) const;          // has a config
  bool IsDone(const std::string& run) const;         // has a summary

  // Waits until the run has written a checkpoint at or after `step`; false if it ended before, or
  // takes too long.
  bool AwaitStep(Running& running, const std::string& run, int64_t step);
  // The same for what it says among its errors.
  static bool AwaitWords(Running& running, const std::string& words);

 private:
  TemporaryDirectory folder_;
};

}  // namespace trireme::whole
