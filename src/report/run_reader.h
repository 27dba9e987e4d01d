#pragma once
#include <sys/types.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/toml.h"
#include "record/json.h"
#include "record/metrics.h"
#include "report/run_state.h"

namespace trireme {

// A line of metrics.jsonl as a reader sees it; not a number where it says nothing.
struct MetricsLine {
  double epoch = NAN, step = NAN;
  double samples = NAN, time_s = NAN;  // since the run began
  double train_loss = NAN, train_accuracy = NAN;
  double test_loss = NAN, test_accuracy = NAN;
  double test_rmse = NAN, test_r2 = NAN;  // where numbers are predicted
  double lr = NAN, samples_per_second = NAN;
  double seconds = 0;  // from the line before, of the same kind
  StepTimes times;
  double bytes = 0;               // since the run began; of all ranks where they are told
  std::vector<RankRecord> ranks;  // of an epoch
  std::string input_bound;        // what it says of waiting for samples
};

// What the files of a run say, whatever state they are in.
struct RunData {
  std::string path;
  std::string name;  // the folder's
  std::vector<TomlEntry> config;
  std::vector<MetricsLine> epochs, steps;
  std::optional<Json> summary;        // an object
  std::optional<Json> mistakes;       // likewise
  std::vector<Json> starts;           // objects: how it was started, and resumed
  std::vector<std::string> problems;  // what could not be read, for people
  RunState state;
  double news_at = 0;  // when the newest of its files was written, in seconds since 1970

  std::string Setting(std::string_view key) const;  // of config, as in "trainer.epochs"; or empty
  bool over() const { return state.kind != RunState::kRunning; }
};

// Reads a run while it is written, on this or another machine: keeps nobody out, needs no notice of
// changes, and each Poll reads only what is new. A last line without its end is left for the next
// time. Files of a run are untrusted: what is damaged is passed over and named in `problems`. One
// thread.
class RunReader {
 public:
  // A UsageError unless the folder holds a run.
  explicit RunReader(const std::string& path);

  bool Poll();  // true if anything is new
  const RunData& data() const { return data_; }

 private:
  struct Stamp {
    bool there = false;
    ino_t inode = 0;
    int64_t size = 0, changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  static Stamp StampOf(const std::string& path);

  void ReadConfig();
  void ReadSummary();
  void ReadMistakes();
  std::optional<Json> ReadObject(const char* name);
  void ReadStarts();
  bool ReadMetrics();
  void AddFinalValues();
  RunState Judge(const std::optional<bool>& held) const;
  void ReadLine(std::string_view line);
  void Problem(std::string text);

  RunData data_;
  std::optional<RunEnd> end_;  // of the last start
  bool first_ = true;
  Stamp config_, summary_, mistakes_, starts_, metrics_;
  uint64_t offset_ = 0;       // of metrics.jsonl, read so far
  int64_t lines_ = 0;         // of metrics.jsonl
  int64_t unread_lines_ = 0;  // of them, those that could not be read
  bool skipping_ = false;     // within a line that is too long
};

RunData ReadRun(const std::string& path);

}  // namespace trireme
