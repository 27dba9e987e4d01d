#pragma once
#include <vector>

#include "graph/program.h"

namespace trireme::cuda {

// Work that no other instruction reads (gradients of weights, sums of the metrics) need not stand
// in the way of what is waited for: it goes to a second stream, aside, unless it fills the card by
// itself. A stream waits for the other where they share memory, and at the end of the work.
struct Lane {
  bool aside = false;
  // Before this instruction its stream waits until the other one has done that instruction, and
  // with it all before; -1: for nothing new.
  int after = -1;
  bool awaited = false;  // some instruction of the other stream waits for this one
};

// One for each instruction of a training program.
std::vector<Lane> PlanLanes(const Program& program);

// Engine::Lingers: what goes aside has a while to run before its memory is used again.
int LingersAside(const Graph& graph, const Node& node, int capacity);

}  // namespace trireme::cuda
