#pragma once
#include "graph/models/models.h"

namespace trireme {

// Three 3x3 convolutions and two dense layers, for images of 28 and 32 px.
Graph BuildCnn(const ModelOptions& options, const std::string& sizes, Shape input, int classes);

}  // namespace trireme
