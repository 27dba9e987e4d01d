#pragma once
#include <string>

#include "graph/graph.h"

namespace trireme {

// model.freeze: "up to NAME", where NAME is a layer or what begins the names of several. All layers
// before the last of these, and that one, are frozen (Node::frozen). UsageError where it says
// something else, names nothing, or leaves nothing to train.
void Freeze(Graph& graph, const std::string& freeze);

}  // namespace trireme
