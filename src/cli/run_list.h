#pragma once
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "record/json.h"

namespace trireme {

// A line of `trireme list runs`: a run, or a study (a sweep, a comparison, folds), whose runs are
// counted.
struct ListedRun {
  std::string path;
  std::time_t started = 0;  // last; the time of its files where it does not say
  std::string data, model, strategy;
  int ranks = 1;
  double epochs = 0;                      // done
  std::optional<double> accuracy, best;   // on test samples: the last one and the best
  std::optional<double> rmse, best_rmse;  // the same where numbers are predicted
  std::string state;
  int runs = 0;  // of a study: how many it holds. Accuracy and best are those of its best run
};

// The runs of a folder, the newest first. A folder that is a run or a study: its own.
// UsageError: there is no such folder.
std::vector<ListedRun> FindRuns(const std::string& folder);

std::string RunTable(const std::vector<ListedRun>& runs, bool coloured);
Json RunListJson(const std::vector<ListedRun>& runs);

}  // namespace trireme
