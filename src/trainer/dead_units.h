#pragma once
#include <optional>
#include <span>
#include <string>

#include "flat/slice.h"
#include "graph/engine.h"
#include "trainer/job.h"

namespace trireme {

// Units before a ReLU whose output was 0 for every sample.
struct DeadUnits {
  std::string layer;
  int dead = 0, units = 0;
  double share() const { return double(dead) / units; }
};

// What the gradient of some samples says: the bias of such a unit, or the shift of its norm, has
// none. Of the layers that have lost half of their units the last, because nothing before a layer
// that is dead as a whole has a gradient; nothing if there is none.
std::optional<DeadUnits> FindDeadUnits(const Graph& graph, const Layout& layout,
                                       std::span<const float> gradient);

// The same for a state, with some training samples, without augmentation and class weights.
// Compiles a program for it: for a run that learns nothing. Nothing, too, where gradients may be
// too small for their type.
std::optional<DeadUnits> ProbeDeadUnits(const Job& job, Engine& engine, Queue& queue, Slice state);

}  // namespace trireme
