#include "transport/memory.h"

namespace trireme {

const char* NameOf(RegionType type) { return type == RegionType::kF32 ? "f32" : "i64"; }

}  // namespace trireme
