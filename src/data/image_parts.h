#pragma once
#include <string>

#include "data/options.h"

namespace trireme {

// The folders below images:DIR that hold the parts. All empty: the classes stand in DIR itself.
struct ImageParts {
  std::string train;
  std::string validation;  // empty: none
  std::string test;
};

// As the options name them, or by the usual names: train, val and test; train and test, or train
// and val, which tests then; seg_train and seg_test.
ImageParts FindImageParts(const std::string& folder, const DataOptions& options);

// As runs that know no validation part saw them: val tests, whatever stands beside it.
ImageParts FindTwoImageParts(const std::string& folder);

}  // namespace trireme
