#include "cli/commands.h"

namespace trireme {

extern const Command kBenchAllReduce;
extern const Command kDoctor;
extern const Command kEval;
extern const Command kList;
extern const Command kPredict;
extern const Command kTrain;

std::span<const Command* const> AllCommands() {
  static constexpr const Command* kAll[] = {
      &kTrain, &kEval, &kPredict, &kList, &kDoctor, &kBenchAllReduce,
  };
  return kAll;
}

}  // namespace trireme
