#pragma once

namespace trireme::cuda {

// What the engine decides of a node: Attributes::choice.
enum NodeChoice {
  kPlainChoice = 0,
  kMasked,   // reads a mask (masks.h)
  kInCells,  // writes or reads values in cells (cells.h)
};

}  // namespace trireme::cuda
