#pragma once
#include <string>
#include <vector>

#include "graph/onnx/onnx_layers.h"

namespace trireme {

struct OnnxText {
  std::string text;
  std::vector<std::string> names;  // of each layer that has weights; else empty
};

// The layers in the grammar of model.layers (docs/networks.md). Sums become residuals, what makes
// the last row makes `classes`. Throws Error where the network's branches do not meet in sums.
OnnxText WriteOnnxText(const OnnxLayers& network);

}  // namespace trireme
