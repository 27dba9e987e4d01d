#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "record/json.h"

namespace trireme {

// How far a run was at the end of an epoch.
struct ComparedPoint {
  double seconds = 0;  // of training, without evaluation and checkpoints
  int64_t samples = 0;
  int64_t bytes = 0;  // see ComparedRun
  std::optional<double> train_loss, test_loss, test_accuracy;
};

// One strategy's run, or what became of it.
struct ComparedRun {
  std::string strategy;
  std::string error;  // the rest is empty then
  int workers = 0, ranks = 0;
  std::vector<ComparedPoint> points;
  std::optional<double> test_accuracy, test_loss;
  double train_seconds = 0, samples_per_second = 0;
  double updates_per_second = 0;  // of weights, by whoever makes them
  // Between ranks, all of them where all are counted, else to and from the one that records.
  int64_t bytes = 0;
  std::optional<double> staleness_mean, staleness_most;
};

// From the folder of a finished run. `local`: every worker makes updates of its own.
ComparedRun ReadComparedRun(const std::string& folder, int workers, bool local);

std::string ComparisonTable(std::span<const ComparedRun> runs);
std::string ComparisonCsv(std::span<const ComparedRun> runs);  // one line per point
Json ComparisonJson(std::span<const ComparedRun> runs);

}  // namespace trireme
