#pragma once
#include <cstdint>
#include <vector>

namespace trireme {

// A part of a step's global batch: positions [begin, end) of the epoch.
struct Shard {
  int index = 0;
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// What one worker does in one step.
struct Work {
  int64_t step = 0;
  int64_t epoch = 0;
  std::vector<Shard> shards;  // own ones, in order; some may be empty
  int64_t batch = 0;          // samples of the whole step, all workers
  int filled_shards = 0;      // shards of the whole step that are not empty
  bool ends_epoch = false;    // in step only: nothing of this epoch comes after
  std::vector<int64_t> leases;
};

// How a run cuts its samples into steps. Equal on all ranks.
struct Plan {
  int64_t samples = 0;  // of an epoch
  int64_t batch = 0;    // global
  int shards = 1;       // of a step
  int64_t steps = 0;    // of the whole run
  int64_t steps_per_epoch() const { return (samples + batch - 1) / batch; }
};

// Shards [first, last) of a step.
struct ShardRange {
  int first = 0, last = 0;
};
// In step: a pure function. Reuses `work`'s memory.
void WorkOf(const Plan& plan, int64_t step, ShardRange own, Work& work);
// The same: worker w of n takes the shards [S w / n, S (w + 1) / n), worker -1 (a server that takes
// part in steps) none.
void WorkOf(const Plan& plan, int64_t step, int worker, int workers, Work& work);

int64_t StepSamples(const Plan& plan, int64_t step);                // of all workers
int64_t StepOf(const Plan& plan, int64_t epoch, int64_t position);  // that takes it

// Workers [first, last) of all, which advance together.
struct Members {
  int first = 0, last = 0;
};
// In step, but an update is of the shards of some members alone: the batch is what they hold.
void LocalWorkOf(const Plan& plan, int64_t step, int worker, int workers, Members members,
                 Work& work);

// Positions [begin, end) of an epoch that one worker takes by itself: a local step. Its number is
// the run's progress: the step in which an in-step run would take the positions.
void LeasedWork(const Plan& plan, int64_t epoch, int64_t begin, int64_t end, Work& work);

int64_t PositionsOf(const Plan& plan);  // that a run in step would use

int ShardsOf(const Plan& plan, int worker, int workers);  // how many worker w takes

}  // namespace trireme
