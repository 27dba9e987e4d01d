#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hwy/highway.h"
#include "hwy/targets.h"

// For tests: the instruction sets of this machine, one at a time.

namespace trireme::cpu {

// Engines made during its life use this instruction set.
class OnlyTarget {
 public:
  explicit OnlyTarget(int64_t target) { hwy::SetSupportedTargetsForTest(target); }
  ~OnlyTarget() { hwy::SetSupportedTargetsForTest(0); }
};

inline std::vector<int64_t> AllTargets() {
  std::vector<int64_t> targets;
  for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest; rest &= rest - 1) {
    targets.push_back(rest & -rest);
  }
  return targets;
}

// How threads divide the work does not depend on the instruction set: where every access is watched
// for races, one is enough.
inline std::vector<int64_t> TargetsForThreads() {
#ifdef TRIREME_WATCHES_THREADS
  return {AllTargets().front()};
#else
  return AllTargets();
#endif
}

inline std::string TargetText(const testing::TestParamInfo<int64_t>& info) {
  return hwy::TargetName(info.param);
}

}  // namespace trireme::cpu
