#pragma once
#include <string>
#include <vector>

#include "base/options.h"

namespace trireme {

// Section [optimizer] of a recipe.
struct OptimizerOptions {
  std::string name = "sgd";  // a row of optimizer/rules.h
  double lr = 0.1;
  double momentum = 0.9;    // sgd, lars
  bool nesterov = false;    // sgd
  bool skip_zeros = true;   // sgd
  double weight_decay = 0;  // spares biases and norms
  double beta1 = 0.9;       // adam, adamw, lamb
  double beta2 = 0.999;     // adam, adamw, lamb
  double epsilon = 1e-8;    // adam, adamw, lamb, adagrad
  double trust = 0.001;     // lars

  int history = 10;             // lbfgs: pairs that it remembers
  double line_decrease = 1e-4;  // lbfgs: of its line search (optimizer/line_search.h)
  double line_curvature = 0.9;
  int line_evaluations = 20;
  int64_t portion = 0;  // lbfgs: samples of a portion; 0: by their number
  bool backups = true;  // lbfgs: portions that are late are computed a second time

  std::string schedule = "constant";  // a row of optimizer/schedule.cc
  std::vector<double> decay_epochs;   // step: where the rate falls
  double decay_every = 0;             // step: ... or every so many epochs
  double decay_factor = 0.1;          // step, plateau: to which share
  int decay_patience = 0;             // plateau: evaluations that are no better; 0: the usual
  double lr_min = 0;                  // where it ends; rising: where it begins
  double warmup_epochs = 0;
  bool scale_lr = false;  // lr * global batch / scale_batch
  double scale_batch = 256;

  double loss_scale = 65536;  // of gradients in float16: what it begins with
  double loss_scale_growth = 2;
  double loss_scale_backoff = 0.5;
  int loss_scale_steps = 2000;

  std::string rates;  // NAME=FACTOR of layers (graph/models/rates.h)

  double clip = 0;  // of the gradients' norm; 0: none. No key of its own: trainer.clip fills it.
  bool scales_loss = false;  // nor this: trainer.precision says it
};

void Describe(OptionTable<OptimizerOptions>& t);

}  // namespace trireme
