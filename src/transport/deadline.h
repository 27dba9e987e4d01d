#pragma once
#include <chrono>

namespace trireme {

// The moment at which a wait gives up.
using Deadline = std::chrono::steady_clock::time_point;

inline Deadline ThisMoment() { return std::chrono::steady_clock::now(); }

inline Deadline After(double seconds) {
  return ThisMoment() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                            std::chrono::duration<double>(seconds));
}

}  // namespace trireme
