#pragma once
#include <cstdint>
#include <string>

namespace trireme {

// Section [optimizer] of a recipe.
struct OptimizerOptions {
  std::string name = "sgd";  // sgd, adam, adamw, adagrad
  float lr = 0.1f;
  float momentum = 0.9f;
  bool nesterov = false;
  float weight_decay = 0;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float clip = 0;                     // filled from trainer.clip
  std::string schedule = "constant";  // constant, step, cosine
  double warmup_epochs = 0;
  bool scale_lr = false;  // lr * global batch / 256
};

}  // namespace trireme
