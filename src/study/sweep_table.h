#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "record/json.h"
#include "report/page/page.h"
#include "study/statistics.h"
#include "study/sweep.h"

namespace trireme {

// A row of a sweep in numbers. Speed-up: by samples/s, against the same combination with the first
// values of the keys that say how many work (SetsParallelism); efficiency: that, divided by how
// many times as many work. So both hold for a fixed global batch (strong scaling) and for
// trainer.batch_per_worker (weak scaling).
struct SweepNumbers {
  Combination combination;
  std::vector<SweepRun> runs;
  std::optional<double> parallelism;
  std::optional<Spread> seconds, rate, accuracy, rmse, loss;  // of the runs that did not fail
  std::optional<Spread> speedup;
  std::optional<double> efficiency;
  std::string error;  // the first one
};

std::vector<SweepNumbers> NumbersOf(const SweepPlan& plan, std::span<const SweepRow> rows);

// The row that a reader looks for: of settings, the one with the highest test accuracy or the
// lowest RMSE; of numbers that work, the fastest. Nothing where all are alike.
std::optional<size_t> BestRow(const SweepPlan& plan, std::span<const SweepNumbers> rows);
bool PredictsNumbers(std::span<const SweepNumbers> rows);  // they have an RMSE, no accuracy
bool CountsAny(const SweepPlan& plan);  // a key that says how many work is varied

std::string SweepText(const SweepPlan& plan, std::span<const SweepNumbers> rows);
// The first line is the header; what goes beyond its columns is a remark, and a cell that tells of
// a failure may be wider than its column.
std::string AlignedText(const std::vector<std::vector<std::string>>& lines);
std::string SweepCsv(const SweepPlan& plan, std::span<const SweepNumbers> rows);  // a line per run
Json SweepJson(const SweepPlan& plan, std::span<const SweepNumbers> rows);

// Charts of accuracy, loss and time over each key that has numbers, of speed-up and efficiency over
// how many work, and all as a table.
Page SweepPage(const SweepPlan& plan, std::span<const SweepNumbers> rows,
               const std::string& command);

// Curves of one number over the values of varied key `axis`, one for each combination of the other
// keys; points that failed are left out. `pick` gives nothing where there is no number.
using PickNumber = std::optional<Spread> (*)(const SweepNumbers& row);
std::vector<Curve> CurvesOver(const SweepPlan& plan, std::span<const SweepNumbers> rows,
                              size_t axis, PickNumber pick);
bool HasNumbers(const Variation& variation);  // and so can be an axis
PageTable SweepPageTable(const SweepPlan& plan, std::span<const SweepNumbers> rows);

}  // namespace trireme
