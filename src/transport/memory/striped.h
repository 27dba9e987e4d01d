#pragma once
#include <memory>
#include <string>
#include <vector>

#include "transport/memory.h"

namespace trireme {

// One Memory of several boxes, which all clients name in the same order. An f32 region lies in
// stripes of equal length, one in each box; a short one, and whatever holds i64 values, in the
// first box alone.
//
// A change is one change of each stripe: of the first stripe after all others, so what the version
// and the notes of the region say, which are the first stripe's, is in all of them. A client that
// dies in between has changed some stripes and not the first. A change that the first box refuses
// is taken back from the others. Calls return when they are done. `way`: of all, in words; empty:
// those of each.
std::unique_ptr<Memory> Stripe(std::vector<std::unique_ptr<Memory>> boxes, std::string way = "");

}  // namespace trireme
