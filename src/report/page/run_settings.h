#pragma once
#include <span>

#include "report/page/run_curves.h"

namespace trireme {

// The keys of the runs' recipes, a row each: all, those that differ, or those that are the same
// everywhere, which have one value.
enum class WhichSettings { kAll, kDifferent, kSame };
PageTable SettingsTable(std::span<const NamedRun> runs, WhichSettings which);

}  // namespace trireme
