#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "record/metrics.h"

namespace trireme {

// What the user sees of a running training, as text. Plain functions: no clock, no terminal.

struct StepProgress {
  int64_t epoch = 0, epochs = 0;  // the running one, from 1; 0 epochs: not known
  int64_t step = 0, steps = 0;    // 0 steps: not known
  int64_t samples = 0;            // trained by this process since it started
  double loss = 0;
  std::optional<double> accuracy;
};

// Measured by whoever shows it; nothing where it is not known yet.
struct Pace {
  std::optional<double> samples_per_second, seconds_left;
};

// "epoch 3/10 | step 1234/5000 | loss 0.4321 | 91.2 % | 12.3k samples/s | 1 m 20 s left", at most
// `width` characters: what matters least is left out first.
std::string StepLine(const StepProgress& progress, const Pace& pace, int width);

// "epoch 3/10 | train loss 0.4321, 91.20 % | test loss 0.4500, 90.80 % | 12.3k samples/s | 4.1 s"
std::string EpochLine(const EpochRecord& record, int64_t epochs);

std::string RmseText(double rmse);                     // "RMSE 3.21"
std::string NumbersText(const NumberRecord& numbers);  // "RMSE 3.21, MAE 2.5, R2 0.8712"

std::string EpochsText(double epochs);  // "3", "2.4", "0.03"

Json StepEvent(const StepProgress& progress, const Pace& pace);  // {"event":"progress", ...}

std::string CountText(double count);  // "950", "12.3k", "4.56M"

}  // namespace trireme
