#pragma once
#include "transport/group.h"

namespace trireme {

// The streams of a group that strategies use. Others (a trainer's sums) begin at kFirstFreeTag.
constexpr Tag kTagSum = 0;
constexpr Tag kTagFoldForward = 1;
constexpr Tag kTagFoldBack = 2;
constexpr Tag kTagState = 3;
constexpr Tag kTagHandout = 4;
constexpr Tag kTagMeeting = 5;
constexpr Tag kTagLease = 6;
constexpr Tag kFirstFreeTag = 16;

}  // namespace trireme
