#pragma once
#include <cstddef>

#include "engine/cuda/context.h"
#include "graph/program.h"

namespace trireme::cuda {

// What a program takes of a card, in bytes.
struct Shares {
  size_t activations = 0;
  size_t samples = 0;  // with their labels
  size_t copies = 0;   // of weights
  size_t scratch = 0, aside_scratch = 0;
  size_t total() const { return activations + samples + copies + scratch + aside_scratch; }
};
Shares SharesOf(const Program& program, Context& context);

// The same; throws Error where the card has no room: what was planned for what, and how many
// samples fit.
Shares RequireRoom(const Program& program, Context& context);

}  // namespace trireme::cuda
