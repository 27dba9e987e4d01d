#pragma once
#include "graph/element.h"

namespace trireme::cuda {

// Numbers on the card. They begin at a multiple of 64 bytes.
struct Array {
  void* data = nullptr;
  Element element = Element::kFloat;
};

}  // namespace trireme::cuda
