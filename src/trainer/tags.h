#pragma once
#include "strategy/step/tags.h"

namespace trireme {

// The streams of a group that a trainer uses.
constexpr Tag kTagScore = kFirstFreeTag;
constexpr Tag kTagStart = kFirstFreeTag + 1;
constexpr Tag kTagMuster = kFirstFreeTag + 2;
constexpr Tag kTagWeights = kFirstFreeTag + 3;
constexpr Tag kTagTimes = kFirstFreeTag + 4;
constexpr Tag kTagBatchNorm = kFirstFreeTag + 5;
constexpr Tag kTagWatch = kFirstFreeTag + 6;

}  // namespace trireme
