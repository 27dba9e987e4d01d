#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/state_io.h"
#include "flat/layout.h"
#include "graph/graph.h"

namespace trireme {

// Between a state slice (on the host) and the tensors of a model file: torchvision's names, order
// and layout, so that files do not depend on the engine's.

// One tensor of the file and where it lies in the state.
struct FileTensor {
  const ParameterSpec* spec;
  Range range;
};
std::vector<FileTensor> FileTensors(const Graph& graph, const Layout& layout);

void WriteModel(const Graph& graph, const Layout& layout, std::span<const float> state,
                StateWriter& writer);

// All tensors must be there with their shapes.
void ReadModel(const Graph& graph, const Layout& layout, const StateReader& reader,
               std::span<float> state);

// Starts from given weights (--init): what `state` holds is replaced by the file's tensors. A last
// layer for another number of classes keeps its initial weights, and so do the layers that `except`
// names, separated by spaces (trainer.init_except); the log says so in one line.
void InitModel(const Graph& graph, const Layout& layout, const StateReader& reader,
               std::span<float> state, const Log& log, std::string_view except = {});

// The name of the first tensor that holds a value which is not finite; empty: none does.
std::string FirstNotFinite(const Graph& graph, const Layout& layout, std::span<const float> state);

// SHA-256 over weights and statistics as the file holds them, in hexadecimal.
std::string HashModel(const Graph& graph, const Layout& layout, std::span<const float> state);

}  // namespace trireme
