#pragma once
#include "base/team.h"
#include "engine/cpu/bf16/unit.h"

// What the processor can do at best, measured: the ceilings that shares of peak refer to.

namespace trireme::cpu {

// Multiplications and additions per second, in float32 or with a unit in bf16, all threads of the
// team together, without touching memory. Takes about `seconds`.
double MeasureMultiplyAdds(Team& team, double seconds, const MatrixUnit* unit = nullptr);

// Bytes copied per second from memory to memory, all threads together; each reads and writes as
// many.
double MeasureCopy(Team& team, double seconds);

}  // namespace trireme::cpu
