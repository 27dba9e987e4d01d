#pragma once
#include <cstdint>
#include <string>

#include "base/options.h"

namespace trireme {

// Section [trainer] of a recipe.
struct TrainerOptions {
  double epochs = 10;
  int64_t steps = 0;
  IntOrWord batch = 32;
  int64_t batch_per_worker = 0;
  int shards = 0;
  int accumulate = 1;
  uint64_t seed = 0;
  std::string init;
  std::string init_except;
  IntOrWord threads = "auto";
  bool pin = true;
  std::string precision = "f32";
  std::string device = "auto";
  bool deterministic = false;
  float clip = 0;
  double ema = 0;
  bool self_test = true;
  int64_t check_steps = 100;
  int evaluate_every = 1;
  int patience = 0;
  double target_accuracy = 0;
  int64_t checkpoint_steps = 0;
  int checkpoint_epochs = 1;
  int keep = 2;
  int64_t metrics_steps = 0;
  double stall_seconds = 300;

  // The best checkpoint is written although none is due. Not where the user wants none inside a
  // run.
  bool KeepsBest() const { return patience || checkpoint_epochs || checkpoint_steps; }
};

void Describe(OptionTable<TrainerOptions>& t);

// trainer.threads as a number: of each of so many ranks that share processors.
int CountThreads(const TrainerOptions& options, int sharing = 1, bool process_each = false);

}  // namespace trireme
