#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "record/class_report.h"
#include "record/error_sums.h"
#include "record/json.h"
#include "record/roc.h"

namespace trireme {

// Plain records of what a run measured, and their JSON form: the lines of metrics.jsonl, the events
// of --json and summary.json. Fractions are 0..1, times are seconds.

// Where the time of the steps went, on one rank.
struct StepTimes {
  double data = 0;
  double forward = 0;
  double backward = 0;
  double communication = 0;  // only what computing did not hide
  double update = 0;
  double hidden = 0;  // communication while this rank computed: no time of its own

  double Total() const { return data + forward + backward + communication + update; }
  // Of short parts some stand for all, so that they may come to more than the whole: then in
  // proportion.
  StepTimes Within(double seconds) const;
};

// What a rank's loader did. Times are of its threads, which work side by side.
struct LoaderRecord {
  int threads = 0;                          // 0: the step fetched its own samples
  int64_t requests = 0;                     // shards that it was asked for
  double read = 0, decode = 0, resize = 0;  // resize: and what is done to pixels besides
  double cpu = 0;                           // of these, what a processor worked
  double seconds = 0;                       // that passed
  double ready_at_take = 0, ready_s = 0;    // shards that lay ready, over requests and over time
  double full = 0;  // seconds in which a data generator waited: its queue was full

  double Fetching() const { return read + decode + resize; }
  double DepthAtTake() const { return requests ? ready_at_take / double(requests) : 0; }
  double MeanDepth() const { return seconds > 0 ? ready_s / seconds : 0; }
  LoaderRecord Since(const LoaderRecord& before) const;
};

// Training waited for samples: what bounds it and what would help. A step's seconds are means.
struct InputRecord {
  double share = 0;                 // of the time, that was waiting
  std::string stage;                // read, decode or resize: what takes most of fetching
  double step_seconds = 0;          // now
  double step_seconds_without = 0;  // any waiting
  int threads = 0;                  // data.threads that would help most; the number now: none does
  double step_seconds_threads = 0;  // with them
  std::string text;                 // all this in words
};

// One rank's part of an epoch.
struct RankRecord {
  int rank = 0;
  StepTimes times;
  int64_t bytes_sent = 0, bytes_received = 0;
  LoaderRecord loader;

  RankRecord Since(const RankRecord& before) const;
};

// What a client of a server did since the run began, or all of them. Staleness: how many versions
// the weights of an update were behind; the counts by that number, the last one: or more.
struct ClientRecord {
  std::string name;
  bool here = false;
  int64_t updates = 0, samples = 0;
  int64_t refused = 0, removed = 0;  // pushes that did not count; times it was given up
  double waited_seconds = 0;         // its worker stood still: for weights, for work
  int64_t overflows = 0;             // steps that it took again, with a smaller loss scale
  double staleness_mean = 0;
  int64_t staleness_max = 0;
  std::vector<int64_t> staleness;
};
struct ClientsRecord {
  std::vector<ClientRecord> clients;
  ClientRecord all;
};

// How well numbers are predicted, in their own unit (ErrorSums).
struct NumberRecord {
  std::optional<double> r2;  // none where all true numbers are equal
  double rmse = 0, mae = 0;
};
NumberRecord RecordOf(const ErrorSums& errors);

// What was not measured is left out of the JSON.
struct EpochRecord {
  double epoch = 0;  // epochs finished; 2.4: the run ended within its third
  int64_t step = 0;  // steps finished since the run began, over all restarts
  std::optional<double> train_loss, train_accuracy;
  std::optional<double> test_loss, test_accuracy, test_top5;
  std::optional<double> validation_loss, validation_accuracy;
  std::optional<NumberRecord> test_numbers, validation_numbers;
  double lr = 0;
  std::optional<double> loss_scale;      // in fp16: at the end, of the next step
  std::optional<int64_t> skipped_steps;  // in fp16: that overflowed, since the run began
  double samples_per_second = 0;
  double seconds = 0;   // of training in this epoch
  int64_t samples = 0;  // trained since the run began
  double time = 0;      // seconds of training since then
  std::optional<double> evaluation_seconds;
  int64_t evaluations = 0;  // of the gradient of all samples; 0: steps of a batch
  StepTimes times;
  int64_t bytes_sent = 0, bytes_received = 0;
  std::vector<RankRecord> ranks;      // of all who advance in step, where there are several
  std::vector<int> shards;            // of a step, by rank, where they go by speed
  std::vector<ClientRecord> clients;  // of a server
  std::string late;                   // which rank the others wait for and why; empty: none
  LoaderRecord loader;
  std::optional<InputRecord> input_bound;
};

// A line every k steps.
struct StepRecord {
  int64_t epoch = 0, step = 0;
  double train_loss = 0;
  double lr = 0;
  double samples_per_second = 0;
  double seconds = 0;   // since the last such line
  int64_t samples = 0;  // trained since the run began
  double time = 0;      // seconds of training since then
  StepTimes times;
  int64_t bytes_sent = 0, bytes_received = 0;
  LoaderRecord loader;
};

// The end result. Scripts rely on the names; what was not measured is null.
struct Summary {
  std::optional<double> test_accuracy, test_top5, test_loss, train_loss;
  std::optional<double> validation_accuracy, validation_loss;  // where there is such a part
  std::optional<double> best_accuracy;  // of all evaluations, of what decides about the training
  std::optional<NumberRecord> test_numbers, validation_numbers;
  std::optional<double> best_rmse;  // as best_accuracy
  std::optional<int64_t> best_epoch;
  std::string end_reason;                  // done, target, patience, converged
  std::string started_at, ended_at, host;  // times as UtcNow() writes them
  Confusion confusion;
  RocCurves roc;  // without classes: not measured
  std::vector<std::string> classes;
  std::string parameters_sha256;
  double samples_per_second = 0;
  double seconds = 0;
  double train_seconds = 0;  // without evaluation and checkpoints: what the rate is over
  int64_t epochs = 0, steps = 0;
  int64_t peak_memory_bytes = 0;  // of the process
  int ranks = 1;
  std::string device_name;          // of a card, in its maker's words
  int64_t device_memory_bytes = 0;  // of it that a rank uses
  std::string strategy, transport, device, precision, machine, version, commit;
  std::optional<double> loss_scale;  // as in the last EpochRecord
  std::optional<int64_t> skipped_steps;
  ClientsRecord clients;                                      // of a free pace
  int loader_threads = 0;                                     // of a rank, at last
  std::optional<int64_t> left_out;                            // files, if data.on_error is skip
  std::optional<InputRecord> input_bound;                     // over all epochs of this life
  std::vector<std::pair<std::string, std::string>> emulated;  // keys of [emulate] and their values
};

Json ToJson(const StepTimes& times);
Json ToJson(const InputRecord& record);
Json ToJson(const EpochRecord& record);  // {"event":"epoch", ...}
Json ToJson(const StepRecord& record);   // {"event":"step", ...}
Json ToJson(const Summary& summary);

// test_r2, test_rmse, test_mae: `part` and what it is.
void AddNumbers(Json& json, const std::string& part, const NumberRecord& numbers);

// What the confusion and the curves say of each class and of all: per_class_..., macro_..., roc.
void AddClasses(Json& json, const Confusion& confusion, const RocCurves& roc);

}  // namespace trireme
