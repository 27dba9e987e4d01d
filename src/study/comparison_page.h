#pragma once
#include <span>
#include <string>

#include "report/page/page.h"
#include "study/comparison.h"

namespace trireme {

// Loss and accuracy of each strategy over time, samples and bytes, how often it updates, how stale
// its updates are. `command` repeats it.
Page ComparisonPage(const std::string& what, std::span<const ComparedRun> runs,
                    const std::string& command);

}  // namespace trireme
