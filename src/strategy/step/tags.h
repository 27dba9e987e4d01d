#pragma once
#include "transport/group.h"

namespace trireme {

// The streams of a group: no two that may be under way at once have the same number. Those of
// strategies.
constexpr Tag kTagSum = 0;
constexpr Tag kTagSumForward = 1;
constexpr Tag kTagSumBack = 2;
constexpr Tag kTagState = 3;
constexpr Tag kTagWorkQueue = 4;
constexpr Tag kTagMeeting = 5;
constexpr Tag kTagLease = 6;
constexpr Tag kTagBalance = 7;
constexpr Tag kTagPulse = 8;
// Of training and what watches over it.
constexpr Tag kTagScore = 16;
constexpr Tag kTagStart = 17;
constexpr Tag kTagPreflight = 18;
constexpr Tag kTagWeights = 19;
constexpr Tag kTagTimes = 20;
constexpr Tag kTagBatchNorm = 21;
constexpr Tag kTagWatch = 22;

}  // namespace trireme
