#include "engine/cpu/bf16/unit.h"

namespace trireme::cpu {

const MatrixUnit* FindMatrixUnit() {
  for (const MatrixUnit* unit : AllMatrixUnits()) {
    if (unit->missing().empty()) return unit;
  }
  return nullptr;
}

std::string WhyNoMatrixUnit() {
  std::string all;
  for (const MatrixUnit* unit : AllMatrixUnits()) {
    const std::string missing = unit->missing();
    if (all.find(missing) != std::string::npos) continue;
    all += (all.empty() ? "" : "; ") + missing;
  }
  return all.empty() ? "bf16 is not supported on this kind of processor" : all;
}

}  // namespace trireme::cpu
