#pragma once
#include <string>
#include <vector>

#include "cli/command.h"

namespace trireme {

inline constexpr Place kTrainPlaces[] = {
    {"COMMAND", Place::kMany, "after --: train RECIPE --out DIR and other flags of train"}};

// The words after `--` of a `launch` command: one run, however often it is started.
struct RunWords {
  std::string run;  // directory
  // `train ...` of the first start, and of later ones, without what a run that goes on brings.
  std::vector<std::string> first, resume;
};

// `own`: flags that the launcher sets; what the user says wins. `elsewhere`: a recipe's file may be
// on other machines only, so one that is not here is left unread. UsageError for what is no run
// that can be started again, and for keys that train would refuse.
RunWords ReadRunWords(const Args& args, const std::vector<std::string>& own, bool elsewhere);

// The name of the run's directory as that of a job.
std::string JobName(const std::string& run);

// The script or file, to --out or the standard output; true: to a file.
bool WriteLaunchFile(const Args& args, Process& process, const std::string& text);

}  // namespace trireme
