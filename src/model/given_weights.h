#pragma once
#include <span>
#include <string>

#include "base/log.h"
#include "flat/layout.h"
#include "graph/graph.h"

namespace trireme {

// The file that trainer.init means: a safetensors file, onnx:FILE, the one of a checkpoint's
// folder, or of a run: that of its best checkpoint where it has one, else of its last.
std::string FindWeights(const std::string& path, const Log& log);

// Puts the weights of such a file into `state`, but for the layers `except` (see InitModel). Throws
// where one of them is not finite.
void TakeWeights(const std::string& file, const std::string& except, const Graph& graph,
                 const Layout& layout, std::span<float> state, const Log& log);

}  // namespace trireme
