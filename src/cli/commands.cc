#include "cli/commands.h"

namespace trireme {

extern const Command kBenchAllReduce;
extern const Command kDoctor;
extern const Command kEval;
extern const Command kJoin;
extern const Command kLaunchSlurm;
extern const Command kList;
extern const Command kPredict;
extern const Command kTrain;

std::span<const Command* const> AllCommands() {
  static constexpr const Command* kAll[] = {
      &kTrain, &kJoin, &kEval, &kPredict, &kList, &kDoctor, &kBenchAllReduce, &kLaunchSlurm,
  };
  return kAll;
}

}  // namespace trireme
