#pragma once
#include <string>
#include <vector>

#include "trainer/evaluation.h"

namespace trireme {

// A table: loss, accuracies, the numbers of each class, confusion matrix.
std::string EvaluationText(const Evaluation& evaluation, const RocCurves& roc,
                           const std::vector<std::string>& classes);
std::string EvaluationJson(const Evaluation& evaluation, const RocCurves& roc,
                           const std::vector<std::string>& classes);

}  // namespace trireme
