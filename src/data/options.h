#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"

namespace trireme {

// The section [data] of a recipe.
struct DataOptions {
  // One of `trireme list data`: iris, csv:FILE, mnist:DIR, ...
  std::string source = "iris";
  // csv: the label's column, by name or number from 1; empty: the last one.
  std::string label;
  // csv: columns to leave out, by name or number from 1, with commas between; empty: none.
  std::string id;
  // csv: whether the label is a class or a number to predict; auto: as it is.
  std::string task = "auto";
  // csv: a column of text becomes one input for each of its texts, up to this many; 0: refused.
  int categories = 100;
  // csv: missing fields are filled in (median), or end the run (fail).
  std::string missing = "median";
  // Weighs the loss of each training sample by its class, so that all classes count the same.
  bool balance = false;
  // Share of the samples held out for the test, for sources without a test part; -1: 0.2.
  double test_fraction = -1;
  // Share of the training samples, once the test part is held out, that validate; 0: none.
  double validation_fraction = 0;
  // Cross-validation: fold `fold` (from 1) of `folds` is the test part, the others train; 0: none.
  int folds = 0;
  int fold = 1;
  // At most this many training samples, chosen at random by trainer.seed; 0: all.
  int64_t limit = 0;
  // Threads that fetch samples ahead; 0: none, the step fetches its own; auto: by their size.
  IntOrWord threads = "auto";
  // Whether an epoch visits the training samples in random order.
  bool shuffle = true;
  // standard (mean 0, deviation 1) or minmax (0 to 1) with the training set's statistics, imagenet
  // or given (mean 0, deviation 1 with known ones), or none.
  std::string normalize = "standard";
  // given: of every channel, of values from 0 to 1.
  std::vector<double> mean, deviation;
  // none, or names of AugmentKinds() with commas between.
  std::string augment = "none";
  // random-resized-crop: at least this share of the picture.
  double least_area = 0.08;
  // randaugment: how many changes of a sample follow each other, and how strong each is, up to
  // kMostMagnitude.
  int operations = 2;
  double magnitude = 9;
  // mixup, cutmix: what the other image's share is drawn from; 0: nothing is mixed.
  double mixup_alpha = 0.2, cutmix_alpha = 1;
  // colour-jitter: its factors are at most so far from 1.
  double jitter = 0.4;
  // images, pack: pixels across and down of what the network sees; 0: 224.
  int size = 0;
  // images, pack: what is shown without a random crop, as a share of the shorter side.
  double centre = 0.875;
  // images: the folders of the parts, if they are not named as usual.
  std::string train_folder, validation_folder, test_folder;
  // images, pack: a file that does not decode ends the run, or is left out.
  std::string on_error = "fail";
  // A folder in which every worker notes the samples that it trains on; empty: none.
  std::string ledger;
};

void Describe(OptionTable<DataOptions>& t);

}  // namespace trireme
