#pragma once
#include <string>

#include "base/options.h"

namespace trireme {

// Section [transport] of a recipe.
struct TransportOptions {
  std::string name = "threads";
  int ranks = 1;
  double timeout_s = 60;
};

inline void Describe(OptionTable<TransportOptions>& t) {
  t.Add(
      "name", &TransportOptions::name, OneOf({"threads", "shm"}),
      "how ranks talk to each other: threads of this process, or processes of this machine (shm)");
  t.Add("ranks", &TransportOptions::ranks, AtLeast(1) && AtMost(1024),
        "ranks of the job, servers included");
  t.Add("timeout_s", &TransportOptions::timeout_s, Above(0),
        "seconds after which a silent rank counts as lost");
}

}  // namespace trireme
