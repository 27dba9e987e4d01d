#pragma once
#include <string>

#include "model/model_card.h"
#include "model/onnx/onnx_graph.h"

namespace trireme {

// Adds what turns raw data into what the network saw in training, and returns that value.
//
// Pictures: `input`, samples x channels x height x width, pixels from 0 to 255. Tables of numbers:
// `input`, samples x columns; a missing number is NaN. Tables with columns of text: an input for
// each column, samples x 1, by its name.
std::string AddOnnxInput(OnnxGraph& onnx, const ModelCard& card);

}  // namespace trireme
