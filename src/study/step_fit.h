#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "record/metrics.h"
#include "study/step_model.h"

namespace trireme {

// The usual step of a run in step: medians over its epochs, the first one apart.
struct StepMeasurement {
  std::string run;
  Recipe recipe;
  int ranks = 1;
  double step_s = 0;
  double samples = 0;  // of a step, all workers
  StepTimes times;     // of a step, on the rank that records
};
// Error or UsageError where the folder holds no run of strategy allreduce with times.
StepMeasurement ReadMeasurement(const std::string& run);

// A model with what it stands on.
struct StepFit {
  StepModel model;
  StepCluster cluster;
  double bucket_bytes = 0;           // of the first run
  std::vector<std::string> remarks;  // what is measured, given, assumed
};

// `model` knows the stretches (step_probe.h); the rest comes from the runs, best of one rank and of
// two. With `link` that is used, else the link that the runs saw: its bandwidth as the recipe
// throttles it or fitted, its latency fitted where something is left to fit it to.
StepFit FitStep(StepModel model, std::span<const StepMeasurement> runs,
                const std::optional<LinkSpeed>& link);

// How that run summed its gradients.
StepChoice ChoiceOf(const Recipe& recipe);

constexpr double kAssumedLatency = 50e-6;                 // of a message, s
constexpr double kAssumedSecondsPerAddedByte = 1.25e-10;  // 8 GB/s

}  // namespace trireme
