#pragma once
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace trireme {

// How keys name layers: NAME means the layer of this name and all whose names begin with it and a
// dot.
bool IsWithin(std::string_view layer, std::string_view name);

// For a message about a name that is none of the graph's: those most like it, or else the
// outermost.
std::string LikelyLayers(const Graph& graph, const std::string& name);

}  // namespace trireme
