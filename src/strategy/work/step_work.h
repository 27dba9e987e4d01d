#pragma once
#include <optional>

#include "strategy/work/work_source.h"

namespace trireme {

// In step: the shards of this worker.
class StepWork : public WorkSource {
 public:
  // `members`, if given: an update is of their shards alone.
  StepWork(const Plan& plan, int worker, int workers, std::optional<Members> members)
      : plan_(plan), worker_(worker), workers_(workers), members_(members) {}
  bool InStep() const override { return true; }
  Turn Next(Replica*, int64_t step, Work& work) override {
    if (step >= plan_.steps) return Turn::kEnd;
    if (members_) {
      LocalWorkOf(plan_, step, worker_, workers_, *members_, work);
    } else {
      WorkOf(plan_, step, worker_, workers_, work);
    }
    return Turn::kStep;
  }

 private:
  const Plan plan_;
  const int worker_, workers_;  // a server that takes part in steps is worker -1
  const std::optional<Members> members_;
};

}  // namespace trireme
