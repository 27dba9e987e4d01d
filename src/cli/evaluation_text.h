#pragma once
#include <string>
#include <vector>

#include "model/evaluation.h"

namespace trireme {

// A table: loss, accuracies, the numbers of each class, confusion matrix. `which` says which
// samples these are: "the test part of iris".
std::string EvaluationText(const Evaluation& evaluation, const RocCurves& roc,
                           const std::vector<std::string>& classes, const std::string& which);
std::string EvaluationJson(const Evaluation& evaluation, const RocCurves& roc,
                           const std::vector<std::string>& classes, const std::string& which);

}  // namespace trireme
