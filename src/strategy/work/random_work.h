#pragma once
#include <cstdint>
#include <vector>

#include "strategy/work/work_source.h"

namespace trireme {

// In step: the shards of a step are cut into as many parts as there are workers, and which worker
// takes which part is drawn anew for every step, by the seed: all draw the same.
class RandomWork : public WorkSource {
 public:
  RandomWork(const Plan& plan, int worker, int workers, uint64_t seed)
      : plan_(plan), worker_(worker), seed_(seed), parts_(size_t(workers)) {}
  bool InStep() const override { return true; }
  Turn Next(Replica*, int64_t step, Work& work) override;

 private:
  const Plan plan_;
  const int worker_;
  const uint64_t seed_;
  std::vector<int> parts_;  // of the workers, in the step that was asked for last
};

}  // namespace trireme
