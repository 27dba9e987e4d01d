#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/cpu/bf16/plain_unit_test.h"
#include "engine/cpu/bf16/unit.h"

// For tests: the units of this machine.

namespace trireme::cpu {

inline std::vector<const MatrixUnit*> UnitsHere() {
  std::vector<const MatrixUnit*> units;
  for (const MatrixUnit* unit : AllMatrixUnits()) {
    if (unit->missing().empty()) units.push_back(unit);
  }
  return units;
}

// And the one of plain loops, so that what all units share runs on every machine.
inline std::vector<const MatrixUnit*> UnitsAndPlain() {
  std::vector<const MatrixUnit*> units = UnitsHere();
  units.push_back(&kPlainUnit);
  return units;
}

inline std::string UnitText(const testing::TestParamInfo<const MatrixUnit*>& info) {
  std::string name(info.param->name);
  std::erase(name, '-');
  return name;
}

}  // namespace trireme::cpu
