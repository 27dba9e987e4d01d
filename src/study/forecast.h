#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "record/json.h"
#include "report/page/page.h"
#include "study/scaling_law.h"
#include "study/step_fit.h"

namespace trireme {

// What `trireme scale` is asked besides the model.
struct ForecastQuestion {
  int to = 64;
  std::optional<std::string> algorithm;  // without: what "auto" would take
  std::optional<double> bucket_bytes;    // without: the run's
};

struct ForecastRow {
  int ranks = 1;
  StepChoice choice;
  StepForecast step;
  double epoch_s = 0, speedup = 1, efficiency = 1;
  BestChoice best;
  std::optional<double> measured_s;  // a step
  bool fitted = false;               // the measurement was used to make the model
};

// 1, 2, 3, 4 ranks, powers of two, those that were measured, and `to`.
std::vector<ForecastRow> Forecast(const StepFit& fit, const ForecastQuestion& question,
                                  std::span<const StepMeasurement> fitted,
                                  std::span<const StepMeasurement> checks);

std::string ForecastText(const StepFit& fit, std::span<const ForecastRow> rows);
Json ForecastJson(const StepFit& fit, std::span<const ForecastRow> rows);
Page ForecastPage(const StepFit& fit, std::span<const ForecastRow> rows, const std::string& what,
                  const std::string& command);

std::string PublishedText(const PublishedForecast& forecast);
Json PublishedJson(const PublishedForecast& forecast);
Page PublishedPage(const PublishedForecast& forecast, const std::string& command);

}  // namespace trireme
