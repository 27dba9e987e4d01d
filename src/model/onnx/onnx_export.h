#pragma once
#include <string>

#include "model/saved_model.h"

namespace trireme {

// The model as an ONNX file: from raw data (onnx_input.h) to `logits`, samples x classes, and
// `probabilities`, which are the logits themselves where the loss has no softmax; where a number is
// predicted, to `prediction`, in the unit of the table. Its metadata holds the names of the
// classes. Throws Error where ONNX, or its format, cannot hold the model.
std::string OnnxBytes(const SavedModel& model);

}  // namespace trireme
