#pragma once
#include <cstdint>
#include <string>

#include "base/options.h"

namespace trireme {

// The section [data] of a recipe.
struct DataOptions {
  // One of `trireme list sources`: iris, csv:FILE, mnist:DIR, ...
  std::string source = "iris";
  // csv: the label's column, by name or number from 1; empty: the last one.
  std::string label;
  // csv: a column to leave out, by name or number from 1; empty: none.
  std::string id;
  // Share of the samples held out for the test, for sources without a test part; -1: 0.2.
  double test_fraction = -1;
  // Cross-validation: fold `fold` (from 1) of `folds` is the test part, the others train; 0: none.
  int folds = 0;
  int fold = 1;
  // At most this many training samples, chosen at random by trainer.seed; 0: all.
  int64_t limit = 0;
  // Threads that fetch samples ahead; 0: none, the step fetches its own; auto: by their size.
  IntOrWord threads = "auto";
  // Whether an epoch visits the training samples in random order.
  bool shuffle = true;
  // standard (mean 0, deviation 1), minmax (0 to 1) or none, with the training set's statistics.
  std::string normalize = "standard";
  // none, flip (left-right, every other time) or crop-flip (also shifted by up to 4 pixels).
  std::string augment = "none";
  // A folder in which every worker notes the samples that it trains on; empty: none.
  std::string ledger;
};

void Describe(OptionTable<DataOptions>& t);

}  // namespace trireme
