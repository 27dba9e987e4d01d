#pragma once
#include <optional>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "record/json.h"
#include "report/plot/chart.h"

namespace trireme {

// A range test of the learning rate (Smith 2017): a short run whose rate grows from step to step,
// so that its loss first falls and then rises, where the rate is too high.

// The recipe of such a run. UsageError where it has no rate to test.
Recipe RangeRecipe(const Recipe& recipe);

struct RangeResult {
  std::vector<double> rates, losses;  // of each step, until the loss is far above the first
  std::vector<double> smooth;         // the loss, averaged over some steps around each
  std::optional<size_t> lowest;       // where the smooth loss is; nothing: it never falls
  // A tenth of the rate with the lowest loss.
  std::optional<double> suggestion() const;
};

// From the rates and losses of all steps. Error where they are too few.
RangeResult JudgeRange(std::vector<double> rates, std::vector<double> losses);

// Of the run in that folder, also one that ended early because its loss was no longer finite.
RangeResult ReadRange(const std::string& run);

LineChart RangeChart(const RangeResult& result);
std::string RangeText(const RangeResult& result, const Recipe& recipe);  // a sentence
Json RangeJson(const RangeResult& result);

}  // namespace trireme
