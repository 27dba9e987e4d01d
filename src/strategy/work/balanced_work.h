#pragma once
#include <vector>

#include "strategy/work/work_source.h"
#include "transport/group.h"

namespace trireme {

// In step, with shards by measured speed: at the end of an epoch all ranks tell each other how long
// a sample took them, and with that the split of the next epoch is agreed. The loader sees no
// further than the epoch whose split is agreed.
class BalancedWork : public WorkSource {
 public:
  // `group`: all ranks; the first `servers` do not train.
  BalancedWork(Group& group, const Plan& plan, int servers);
  bool InStep() const override { return true; }
  // kEpochEnd: of an epoch whose split is not agreed yet.
  Turn Next(Replica* replica, int64_t step, Work& work) override;
  void EndEpoch(double seconds) override;
  std::span<const int> ShardsOfRanks() const override { return shards_; }
  void Save(StateWriter& writer) const override;
  void Load(const StateReader& reader) override;

 private:
  int64_t OwnSamples(int64_t first_step, int64_t end_step);

  Group& group_;
  const Plan plan_;
  const int servers_;
  std::vector<int> shards_;  // by rank
  int64_t epoch_ = -1;       // whose split is agreed
  int64_t first_step_ = 0;   // of it, in this life
  Work work_;
};

}  // namespace trireme
