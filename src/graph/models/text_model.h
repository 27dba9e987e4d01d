#pragma once
#include "graph/models/models.h"

namespace trireme {

// The network that model.layers describes. What follows the colon of its name is the file that the
// text came from.
// UsageError, with line and column, for a text that makes no network.
Graph BuildText(const ModelOptions& options, const std::string& file, Shape input, int classes);

// The text in a file: UTF-8, of a size that a network can have.
std::string ReadLayers(const std::string& file);

}  // namespace trireme
