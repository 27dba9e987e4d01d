#pragma once
#include "graph/models/models.h"

namespace trireme {

// Dense layers, each hidden one followed by its norm, activation and dropout. Names as in a
// torch Sequential: layers.0 is the first dense layer. Where the loss compares outputs with
// one-hot labels (LossKind), a sigmoid or tanh also follows the output layer (the classic setting);
// a relu does not: its zeros would not learn.
Graph BuildMlp(const ModelOptions& options, const std::string& sizes, Shape input, int classes);

}  // namespace trireme
