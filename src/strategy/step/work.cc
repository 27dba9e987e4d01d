#include "strategy/step/work.h"

#include <algorithm>

#include "base/assert.h"

namespace trireme {

void WorkOf(const Plan& plan, int64_t step, int worker, int workers, Work& work) {
  TRIREME_ASSERT(worker >= -1 && worker < workers);
  const int64_t shards = plan.shards;
  ShardRange own;
  if (worker >= 0) own = {int(shards * worker / workers), int(shards * (worker + 1) / workers)};
  WorkOf(plan, step, own, work);
}

void WorkOf(const Plan& plan, int64_t step, ShardRange own, Work& work) {
  TRIREME_ASSERT(step >= 0 && own.first <= own.last && own.last <= plan.shards);
  const int64_t per_epoch = plan.steps_per_epoch();
  const int64_t shards = plan.shards;
  work.step = step;
  work.epoch = step / per_epoch;
  const int64_t of_epoch = step - work.epoch * per_epoch;
  const int64_t begin = of_epoch * plan.batch;
  const int64_t count = std::min(plan.batch, plan.samples - begin);
  work.batch = count;
  work.filled_shards = int(std::min(count, shards));
  work.ends_epoch = of_epoch == per_epoch - 1;
  work.leases.clear();
  work.shards.clear();
  int64_t at = begin + count * own.first / shards;
  for (int64_t s = own.first; s < own.last; ++s) {
    const int64_t end = begin + count * (s + 1) / shards;
    work.shards.push_back({.index = int(s), .begin = at, .end = end});
    at = end;
  }
}

int64_t StepSamples(const Plan& plan, int64_t step) {
  return std::min(plan.batch, plan.samples - step % plan.steps_per_epoch() * plan.batch);
}

int64_t StepOf(const Plan& plan, int64_t epoch, int64_t position) {
  return epoch * plan.steps_per_epoch() + position / plan.batch;
}

void LocalWorkOf(const Plan& plan, int64_t step, int worker, int workers, Members members,
                 Work& work) {
  WorkOf(plan, step, worker, workers, work);
  const int64_t count = work.batch, shards = plan.shards;
  const int64_t first = shards * members.first / workers, last = shards * members.last / workers;
  work.batch = count * last / shards - count * first / shards;
  work.filled_shards = 0;
  for (int64_t s = first; s < last; ++s) {
    work.filled_shards += count * (s + 1) / shards > count * s / shards;
  }
  if (!work.batch) work.shards.clear();
}

void LeasedWork(const Plan& plan, int64_t epoch, int64_t begin, int64_t end, Work& work) {
  work.step = StepOf(plan, epoch, begin);
  work.epoch = epoch;
  work.shards.assign(1, {.index = 0, .begin = begin, .end = end});
  work.batch = end - begin;
  work.filled_shards = 1;
  work.ends_epoch = false;
  work.leases.clear();
}

int64_t PositionsOf(const Plan& plan) {
  const int64_t epochs = plan.steps / plan.steps_per_epoch();
  const int64_t rest = plan.steps - epochs * plan.steps_per_epoch();
  return epochs * plan.samples + std::min(plan.samples, rest * plan.batch);
}

int ShardsOf(const Plan& plan, int worker, int workers) {
  if (worker < 0) return 0;
  return int(int64_t(plan.shards) * (worker + 1) / workers -
             int64_t(plan.shards) * worker / workers);
}

}  // namespace trireme
