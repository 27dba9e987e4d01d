#include "data/options.h"

namespace trireme {

void Describe(OptionTable<DataOptions>& t) {
  using enum Binds;
  using D = DataOptions;
  t.Add("source", &D::source, Any(), kRanks | kResume,
        "the samples: iris, csv:FILE, mnist:DIR, ... (trireme list data)");
  t.Add("label", &D::label, Any(), kRun,
        "csv: the label's column, by name or number from 1; empty: the last one");
  t.Add("id", &D::id, Any(), kRun,
        "csv: columns to leave out, by name or number, with commas between; empty: none");
  t.Add("test_fraction", &D::test_fraction, Between(-1, 1), kRun,
        "share of the samples held out for the test, where the source has no test part, more than "
        "0 and less than 1; -1: 0.2");
  t.Add("validation_fraction", &D::validation_fraction, Between(0, 1), kRun,
        "share of the training samples held out for validation, where the source has no such part, "
        "less than 1; 0: none");
  t.Add("folds", &D::folds, AtLeast(0), kRun,
        "cut the samples into so many folds, alike in their classes (train --folds); 0: none");
  t.Add("fold", &D::fold, AtLeast(1), kRun, "the fold that tests, from 1; the others train");
  t.Add("limit", &D::limit, AtLeast(0), kRun, "at most so many training samples; 0: all");
  t.Add("threads", &D::threads, AtLeast(0) || OneOf({"auto"}), kRanks,
        "threads that fetch samples ahead; 0: the step fetches its own; auto: none or one for "
        "samples "
        "in memory; where they are decoded, what computing leaves of the cores, and more while "
        "training waits and they help");
  t.Add("shuffle", &D::shuffle, Any(), kRun, "visit the training samples in random order");
  t.Add("normalize", &D::normalize, OneOf({"standard", "minmax", "imagenet", "given", "none"}),
        kRun,
        "mean 0 and deviation 1, or 0 to 1, by the training samples; imagenet, given: mean 0 and "
        "deviation 1 by known numbers (data.mean, data.deviation); without a recipe, with "
        "trainer.init: as its weights want it, where that can be told");
  t.Add("mean", &D::mean, Any(), kRun, "normalize given: of every channel, of values from 0 to 1");
  t.Add("deviation", &D::deviation, Any(), kRun, "normalize given: of every channel");
  t.Add("augment", &D::augment, Any(), kJob,
        "of training pictures, with commas between: flip (left-right), random-resized-crop, "
        "pad-crop (shifted by up to 4 pixels), erase; none; crop-flip is flip,pad-crop");
  t.Add("least_area", &D::least_area, Between(0.001, 1), kJob,
        "random-resized-crop: at least this share of the picture");
  t.Add("size", &D::size, Between(0, 4096), kRun,
        "images, pack: pixels across and down of what the network sees; 0: 224, but train without "
        "a recipe "
        "takes that of small pictures");
  t.Add("centre", &D::centre, Between(0.01, 1), kRun,
        "images, pack: the square in the middle that is shown without a random crop, as a share "
        "of the shorter side");
  t.Add("train_folder", &D::train_folder, Any(), kRun,
        "images: the folder with the training part, if it is not train or seg_train; with "
        "test_folder");
  t.Add("validation_folder", &D::validation_folder, Any(), kRun,
        "images: the folder with the validation part, if it is not val beside train and test; with "
        "train_folder and test_folder");
  t.Add("test_folder", &D::test_folder, Any(), kRun,
        "images: the folder with the test part, if it is not test, seg_test or val; with "
        "train_folder");
  t.Add("on_error", &D::on_error, OneOf({"fail", "skip"}), kRun,
        "images: a file that does not decode ends the run, or all files are tried before it "
        "begins and those are left out");
  t.Add(
      "ledger", &D::ledger, Any(), kRanks,
      "folder in which every worker notes the samples that it trains on (worker-0.csv, ...: step, "
      "epoch, position, sample); empty: none");
}

}  // namespace trireme
