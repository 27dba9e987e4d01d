#pragma once
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/onnx/onnx_file.h"

namespace trireme {

// The network of an ONNX file in our operations, ONNX's order of axes left behind: it has images as
// channels x height x width, we have height x width x channels.

// A parameter or statistic of a layer, as a model file of ours has it.
struct OnnxWeight {
  std::string name;  // weight, bias, running_mean, running_var
  std::vector<int64_t> shape;
  const OnnxTensor* tensor = nullptr;  // null: zeros
  bool turned = false;                 // the tensor's two axes change places
  Shape image;                         // of whose values the last axis is a row; 1x1xN: of none

  std::vector<float> Values() const;
};

struct OnnxLayer {
  std::string op;
  Attributes attributes;
  std::string name;         // as its tensors or its node are called; perhaps empty
  std::string node;         // for messages
  std::vector<int> inputs;  // values: 0 is the network's input, i + 1 what layer i makes
  std::vector<OnnxWeight> weights;
};

struct OnnxLayers {
  std::vector<OnnxLayer> layers;  // in the order in which they can be computed
  int output = 0;                 // a value
  // What the file does to its input before the first layer, value * scale + shift for each channel;
  // empty: nothing.
  std::vector<double> scale, shift;
};

// Throws Error with all nodes for which there is no operation here; errors do not name the file.
// The tensors stay in it.
OnnxLayers ReadOnnxLayers(const OnnxFile& file);

std::string ExtentsText(const std::vector<int64_t>& extents);  // 64x3x7x7

}  // namespace trireme
