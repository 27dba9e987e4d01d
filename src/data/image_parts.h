#pragma once
#include <span>
#include <string>

#include "data/options.h"

namespace trireme {

// The folders below images:DIR that hold the parts; empty: DIR itself. Without a test part the
// classes of all samples stand in `train`.
struct ImageParts {
  std::string train;
  std::string validation;  // empty: none
  std::string test;
};

// As the options name them, or by the usual names: train, val and test; train and test, or train
// and val, which tests then; seg_train and seg_test. A folder that holds nothing but a folder of
// folders is passed through, as archives have them (seg_train/seg_train/CLASS), unless it is one of
// the known classes.
ImageParts FindImageParts(const std::string& folder, const DataOptions& options,
                          std::span<const std::string> classes);

// As runs that know no validation part saw them: val tests, whatever stands beside it.
ImageParts FindTwoImageParts(const std::string& folder);

}  // namespace trireme
