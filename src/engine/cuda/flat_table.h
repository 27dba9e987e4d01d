#pragma once
#include "flat/arithmetic.h"

namespace trireme::cuda {

extern const FlatTable kCudaTable;  // of every card

}  // namespace trireme::cuda
