#pragma once
#include <gtest/gtest.h>

#include "graph/engine.h"

namespace trireme::check {

// Of an engine that takes bytes: shards and evaluations have the same bits whether their samples
// come as values that the processor drew (base/sample_change.h), as bytes, or as numbers of a set
// on the device; changed in all ways or not at all; pictures, and rows that a network makes of
// them.
testing::AssertionResult CheckBytes(Engine& engine);

}  // namespace trireme::check
