#include "engine/cpu/bf16/unit.h"

namespace trireme::cpu {

extern const MatrixUnit kNeonBFloat;

std::span<const MatrixUnit* const> AllMatrixUnits() {
  static constexpr const MatrixUnit* kUnits[] = {&kNeonBFloat};
  return kUnits;
}

}  // namespace trireme::cpu
