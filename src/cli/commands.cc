#include "cli/commands.h"

namespace trireme {

extern const Command kBenchAllReduce;
extern const Command kBenchConv;
extern const Command kBenchGemm;
extern const Command kBenchImages;
extern const Command kBenchMemory;
extern const Command kBenchPeak;
extern const Command kBenchStep;
extern const Command kCompare;
extern const Command kCompletion;
extern const Command kDataGet;
extern const Command kDataInfo;
extern const Command kDataPack;
extern const Command kDataShow;
extern const Command kDataVerify;
extern const Command kDoctor;
extern const Command kEval;
extern const Command kExport;
extern const Command kJoin;
extern const Command kLaunchKubernetes;
extern const Command kLaunchRank;
extern const Command kLaunchSlurm;
extern const Command kLicenses;
extern const Command kList;
extern const Command kMan;
extern const Command kMemoryBox;
extern const Command kPredict;
extern const Command kReplay;
extern const Command kReport;
extern const Command kScale;
extern const Command kSweep;
extern const Command kTrain;
extern const Command kTune;
extern const Command kWatch;

// In this order they stand in the help, which shows how the first five are used.
std::span<const Command* const> AllCommands() {
  static constexpr const Command* kAll[] = {
      &kTrain,     &kWatch,          &kReport,      &kEval,        &kPredict,          &kExport,
      &kList,      &kDoctor,         &kSweep,       &kTune,        &kCompare,          &kReplay,
      &kScale,     &kJoin,           &kMemoryBox,   &kBenchPeak,   &kBenchGemm,        &kBenchConv,
      &kBenchStep, &kBenchAllReduce, &kBenchMemory, &kBenchImages, &kDataGet,          &kDataPack,
      &kDataInfo,  &kDataVerify,     &kDataShow,    &kLaunchSlurm, &kLaunchKubernetes, &kLaunchRank,
      &kMan,       &kCompletion,     &kLicenses,
  };
  return kAll;
}

}  // namespace trireme
