#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "engine/cuda/choices.h"
#include "engine/cuda/device.h"

namespace trireme::cuda {

// A product or a convolution that can be computed in several ways.
struct Tunable {
  std::string key;              // in the choices
  double flops = 0, bytes = 0;  // that one call computes, and moves at least
  int uses = 1;                 // in a step
  int ways = 1;                 // numbered in the order of the library's advice
  size_t memory = 0;            // bytes that `run` wants
  // Enqueues it once, on memory of that size with anything in it. False: not in this way.
  std::function<bool(int way, std::byte* memory)> run;
  std::function<void(int way)> take;  // that way from now on
};

// Measures on the queue for at most about so many seconds: first what the library advises, then
// other ways where most time could be gained. Each takes the fastest, which the choices keep. Where
// the card has no memory to measure in, nothing changes.
void Tune(std::vector<Tunable> tunables, CudaQueue& queue, double seconds, Choices& choices);

}  // namespace trireme::cuda
