#pragma once
#include <string>

#include "base/function_ref.h"

namespace trireme {

// What transport.hosts says to take the list of a batch system.
inline constexpr char kAutoHosts[] = "auto";

// The machines of a batch job, in the words of a hosts file (launch/hosts_file.h).
struct BatchHosts {
  std::string text;
  std::string file;  // that the batch system wrote
};

// Reads the list that PBS, LSF or Grid Engine left for the job: a line for each slot, or one for
// each machine with its slots. `variable` gives an environment variable or null. UsageError: none
// did.
BatchHosts ReadBatchHosts(FunctionRef<const char*(const char* name)> variable);

}  // namespace trireme
