#pragma once

namespace trireme::cuda {

// Numbers on the card: float32, or `narrow`, bf16. They begin at a multiple of 64 bytes.
struct Array {
  void* data = nullptr;
  bool narrow = false;
};

}  // namespace trireme::cuda
