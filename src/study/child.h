#pragma once
#include <string>
#include <vector>

#include "base/stop_notice.h"

namespace trireme {

// Runs this program again with other words, behind those of a launcher where there is one (mpirun
// -n 4); what it prints goes to the file `log`, or, where that is "", to where this process prints.
// Returns its exit code, 128 + the signal if one ended it. A signal that `signals` got is handed
// on, so that the child writes what it has and ends; its code says so. The child does not outlive
// this process.
int RunChild(const std::vector<std::string>& words, const std::string& log, StopNotice& signals,
             const std::vector<std::string>& launcher = {});

// What a child that failed with `code` said of it: its first error, else its last line.
std::string ChildError(const std::string& log, int code);

}  // namespace trireme
