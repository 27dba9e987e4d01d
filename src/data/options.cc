#include "data/options.h"

#include "data/augment.h"

namespace trireme {

void Describe(OptionTable<DataOptions>& t) {
  using enum Binds;
  using D = DataOptions;
  t.Add("source", &D::source, Any(), kRanks | kResume,
        "the samples: iris, csv:FILE, mnist:DIR, ... (trireme list data)");
  t.Add("label", &D::label, Any(), kRun,
        "csv: the label's column, by name or number from 1; empty: the last one");
  t.Add("id", &D::id, Any(), kRun,
        "csv: columns to leave out, by name or number, comma-separated; empty: none");
  t.Add("task", &D::task, OneOf({"auto", "classification", "regression"}), kRun,
        "csv: what is learnt of the label, its class or a number; auto: a number if the labels are "
        "numbers with fractions, or whole ones with few rows each");
  t.Add("categories", &D::categories, Between(0, 100'000), kRun,
        "csv: most different texts in a column of text, which becomes one input for each; 0: such "
        "columns are refused");
  t.Add("missing", &D::missing, OneOf({"median", "fail"}), kRun,
        "csv: what to do with empty fields (also ?, NA, N/A, NaN, null, none); median: numbers are "
        "filled in with their column's, and another input tells which; fail: stop the run");
  t.Add("balance", &D::balance, Any(), kRun,
        "weigh the loss of training samples inversely to the frequency of their class, so that "
        "all classes count the same");
  t.Add("test_fraction", &D::test_fraction, Between(-1, 1), kRun,
        "share of the samples held out for testing, above 0 and below 1, if the source has no test "
        "part; -1: 0.2");
  t.Add("validation_fraction", &D::validation_fraction, Between(0, 1), kRun,
        "share of the training samples held out for validation, below 1, if the source has no "
        "validation part; 0: none");
  t.Add("folds", &D::folds, AtLeast(0), kRun,
        "number of folds to cut the samples into, with classes spread evenly (train --folds); 0: "
        "none");
  t.Add("fold", &D::fold, AtLeast(1), kRun,
        "the fold to test on, from 1; the others are trained on");
  t.Add("limit", &D::limit, AtLeast(0), kRun, "largest number of training samples; 0: all");
  t.Add("threads", &D::threads, AtLeast(0) || OneOf({"auto"}), kRanks,
        "threads that fetch samples in advance; 0: each step fetches its own; auto: none where "
        "fetching takes no time, else the cores that computing leaves free, at least one; for "
        "samples to decode, more while training waits and they help");
  t.Add("shuffle", &D::shuffle, Any(), kRun, "visit the training samples in random order");
  t.Add("normalize", &D::normalize, OneOf({"standard", "minmax", "imagenet", "given", "none"}),
        kRun,
        "standard, minmax: mean 0 and deviation 1, or 0 to 1, over the training samples; imagenet, "
        "given: mean 0 and deviation 1 by known numbers (given: data.mean, data.deviation); with "
        "trainer.init and no recipe: what its weights expect, if that is known");
  t.Add("mean", &D::mean, Any(), kRun,
        "normalize given: the mean of each channel, for values from 0 to 1");
  t.Add("deviation", &D::deviation, Any(), kRun,
        "normalize given: the standard deviation of each channel");
  t.Add(
      "augment", &D::augment, Any(), kJob,
      "changes to training images, comma-separated: flip (left-right), random-resized-crop, "
      "pad-crop (shifts by up to 4 pixels), randaugment (rotates, shears, shifts), colour-jitter, "
      "erase, mixup, cutmix; or none; crop-flip is flip,pad-crop");
  t.Add("least_area", &D::least_area, Between(0.001, 1), kJob,
        "random-resized-crop: smallest share of the image to cut out");
  t.Add("operations", &D::operations, Between(1, 10), kJob,
        "randaugment: how many changes, drawn at random, an image undergoes");
  t.Add("magnitude", &D::magnitude, Between(0, kMostMagnitude), kJob,
        "randaugment: strength of each change; 30: rotated by 30 degrees, sheared by 0.3 or "
        "shifted by 45 % of the side");
  t.Add("mixup_alpha", &D::mixup_alpha, Between(0, 4), kJob,
        "mixup: the other image's share is drawn from Beta(mixup_alpha, mixup_alpha): 1: any share "
        "is as likely, smaller: mostly one of both; 0: nothing is mixed");
  t.Add("cutmix_alpha", &D::cutmix_alpha, Between(0, 4), kJob,
        "cutmix: the same for the area of the rectangle");
  t.Add("jitter", &D::jitter, Between(0, 1), kJob,
        "colour-jitter: largest distance from 1 of the factors of brightness, contrast and "
        "saturation");
  t.Add("size", &D::size, Between(0, 4096), kRun,
        "images, pack: height and width of the network's input, in pixels; 0: 224, but without a "
        "recipe it follows from the images");
  t.Add("centre", &D::centre, Between(0.01, 1), kRun,
        "images, pack: side of the central square used without a random crop, as a share of the "
        "shorter side");
  t.Add("train_folder", &D::train_folder, Any(), kRun,
        "images: folder of the training part, if not train or seg_train; needs test_folder");
  t.Add("validation_folder", &D::validation_folder, Any(), kRun,
        "images: folder of the validation part, if not val next to train and test; needs "
        "train_folder and test_folder");
  t.Add("test_folder", &D::test_folder, Any(), kRun,
        "images: folder of the test part, if not test, seg_test or val; needs train_folder");
  t.Add("on_error", &D::on_error, OneOf({"fail", "skip"}), kRun,
        "images: what to do with files that cannot be decoded; fail: stop the run; skip: check all "
        "files before the run and leave those out");
  t.Add("ledger", &D::ledger, Any(), kRanks,
        "folder where every worker records the samples it trains on (worker-0.csv, ...: step, "
        "epoch, position, sample); empty: none");
}

}  // namespace trireme
