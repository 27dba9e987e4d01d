#pragma once
#include <string>
#include <vector>

#include "base/state_io.h"
#include "data/normalizer.h"
#include "data/sample.h"
#include "data/source.h"

namespace trireme {

// What a trained model must remember of its data, and of a network of its own: a checkpoint carries
// it, so that evaluation and prediction see samples as training did.
struct ModelCard {
  SampleShape shape;
  std::vector<std::string> classes;  // none where a number is predicted
  Normalizer normalizer;
  // Training's, the test's and, where there is such a part, validation's; empty: not known.
  std::vector<int64_t> samples = {};
  ColumnNames columns = {};
  ColumnCodes codes = {};
  std::string layers = {};  // the network, where it is written as text

  Task task() const { return normalizer.target() ? Task::kRegression : Task::kClassification; }
  int outputs() const { return task() == Task::kRegression ? 1 : int(classes.size()); }
  KnownData known() const { return {classes, columns, codes, task()}; }
  void Save(StateWriter& writer) const;
  static ModelCard Load(const StateReader& reader);
};

}  // namespace trireme
