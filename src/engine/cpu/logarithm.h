#pragma once

namespace trireme::cpu {

// The natural logarithm by arithmetic of double alone. Each C library rounds its own otherwise, and
// the same file would report other losses on another system.
float Logarithm(float x);

}  // namespace trireme::cpu
