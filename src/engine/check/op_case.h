#pragma once
#include <memory>
#include <string>
#include <vector>

#include "graph/engine.h"
#include "graph/op.h"
#include "graph/program.h"

namespace trireme::check {

// One operation with given sizes, in a graph of its own. Value 0 is not used; the values that the
// operation reads are open, or made by the forward node that it is the gradient of (a chain: by
// those that its parts are the gradients of).
struct OpCase {
  std::string text;  // for messages: conv2d_grad_input of conv2d(7x5x3), kernel 3, ... 2 samples
  Graph graph;
  size_t node = 0;    // the one under test
  int count = 1;      // samples; 0: an empty shard
  int capacity = 1;   // of the program
  int in_place = -1;  // output 0 lies on this input
};

// Odd sizes, strides, paddings, one sample and more, an empty shard, in place and not.
std::vector<OpCase> CasesFor(const OpDef& op);

// The case with every choice of operands that its kernel takes in 16 bits, held as `element`.
std::vector<OpCase> NarrowCases(const OpCase& c, const NarrowOperands& narrow,
                                Element element = Element::kBFloat);

// A program of the given nodes of the case's graph. Values lie one after another, 64-byte aligned,
// with a gap behind each.
std::shared_ptr<const Program> MakeProgram(const OpCase& c, const std::vector<size_t>& nodes);

}  // namespace trireme::check
