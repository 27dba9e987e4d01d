#include "data/options.h"

namespace trireme {

void Describe(OptionTable<DataOptions>& t) {
  using D = DataOptions;
  t.Add("source", &D::source, Any(), "the samples: iris, csv:FILE, mnist:DIR, ...");
  t.Add("label", &D::label, Any(),
        "csv: the label's column, by name or number from 1; empty: the last one");
  t.Add("id", &D::id, Any(), "csv: a column to leave out, by name or number; empty: none");
  t.Add("test_fraction", &D::test_fraction, Between(-1, 1),
        "share of the samples held out for the test, where the source has no test part; -1: 0.2");
  t.Add("folds", &D::folds, AtLeast(0),
        "cut the samples into so many folds, alike in their classes (train --folds); 0: none");
  t.Add("fold", &D::fold, AtLeast(1), "the fold that tests, from 1; the others train");
  t.Add("limit", &D::limit, AtLeast(0), "at most so many training samples; 0: all");
  t.Add("threads", &D::threads, AtLeast(0) || OneOf({"auto"}),
        "threads that fetch samples ahead; 0: the step fetches its own");
  t.Add("shuffle", &D::shuffle, Any(), "visit the training samples in random order");
  t.Add("normalize", &D::normalize, OneOf({"standard", "minmax", "none"}),
        "mean 0 and deviation 1, or 0 to 1, by the training samples");
  t.Add("augment", &D::augment, OneOf({"none", "flip", "crop-flip"}),
        "of training pictures: mirrored, also shifted by up to 4 pixels");
  t.Add("ledger", &D::ledger, Any(),
        "folder in which every worker notes the samples that it trains on (worker-0.csv, ...: step, "
        "epoch, position, sample); empty: none");
}

}  // namespace trireme
