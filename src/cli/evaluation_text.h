#pragma once
#include <string>
#include <vector>

#include "trainer/evaluation.h"

namespace trireme {

// A table: loss, accuracies, per-class accuracy, confusion matrix.
std::string EvaluationText(const Evaluation& evaluation, const std::vector<std::string>& classes);
std::string EvaluationJson(const Evaluation& evaluation, const std::vector<std::string>& classes);

}  // namespace trireme
