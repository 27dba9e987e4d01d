#pragma once
#include "base/team.h"

// What the processor can do at best, measured: the ceilings that shares of peak refer to.

namespace trireme::cpu {

// Multiplications and additions in float32 per second, all threads of the team together, without
// touching memory. Takes about `seconds`.
double MeasureMultiplyAdds(Team& team, double seconds);

// Bytes copied per second from memory to memory, all threads together; each reads and writes as
// many.
double MeasureCopy(Team& team, double seconds);

}  // namespace trireme::cpu
