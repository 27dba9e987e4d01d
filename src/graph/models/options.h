#pragma once
#include <string>

#include "base/options.h"

namespace trireme {

// Section [model] of a recipe. "auto" leaves a choice to the model; a setting that a model cannot
// use is an error.
struct ModelOptions {
  std::string name = "mlp:4-30-20-3";
  std::string activation = "relu";  // see activations.h
  std::string norm = "auto";        // auto, none, batch, layer, layer-plain (without affine)
  std::string loss = "auto";        // auto, or a row of graph/models/losses.h
  double dropout = 0;               // share of values set to zero
  float smoothing = 0;              // of the labels, with cross-entropy
  std::string stem = "auto";        // auto, 7x7, 3x3: resnets
  double stochastic_depth = 0;      // rate of the last residual branches: vit
  std::string layers;               // the network as text (docs/networks.md)
  std::string freeze;               // see freeze.h; empty: all layers are trained
};

void Describe(OptionTable<ModelOptions>& t);

}  // namespace trireme
