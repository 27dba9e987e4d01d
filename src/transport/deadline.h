#pragma once
#include <chrono>

namespace trireme {

// The moment at which a wait gives up.
using Deadline = std::chrono::steady_clock::time_point;

inline Deadline After(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(seconds));
}

}  // namespace trireme
