#include "engine/cpu/bf16/unit.h"

namespace trireme::cpu {

extern const MatrixUnit kAmx, kAvx512BFloat;

std::span<const MatrixUnit* const> AllMatrixUnits() {
  static constexpr const MatrixUnit* kUnits[] = {&kAmx, &kAvx512BFloat};
  return kUnits;
}

}  // namespace trireme::cpu
