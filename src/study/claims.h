#pragma once
#include <span>
#include <string>

#include "study/replay.h"

namespace trireme {

// What our runs say of a published claim (ReplayClaim::ours), in words; empty: no run says it.

// "fastest with transport.ranks = 8 (data.limit=100), ...": for each combination of the other keys.
std::string FastestOf(const ReplayPart& part, std::span<const SweepNumbers> rows);
// "A takes 1.50, 1.20 times as long as B with workers = 1, 2": A, B are the values of the key
// behind the axis, if there is one.
std::string TimesAsLong(const ReplayPart& part, std::span<const SweepNumbers> rows);
// "1.5 GiB with trainer.batch = 5, 3.0 GiB with 50": the process' peak at both ends of the axis.
std::string PeakMemory(const ReplayPart& part, std::span<const SweepNumbers> rows);

}  // namespace trireme
