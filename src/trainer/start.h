#pragma once
#include <optional>
#include <span>
#include <vector>

#include "base/log.h"
#include "record/checkpoint.h"
#include "record/run_directory.h"
#include "trainer/job.h"
#include "trainer/train_state.h"
#include "transport/group.h"

namespace trireme {

// Where a life of the run begins: the job's initial state, or a checkpoint.
struct Start {
  std::optional<Checkpoint> checkpoint;
  std::vector<float> loaded;
  std::span<const float> state;
  TrainState at;  // how far the run is

  const StateReader* resume() const { return checkpoint ? &checkpoint->state() : nullptr; }
};

// With a checkpoint, which must be of this job's model and data.
Start OpenStart(const Job& job, Checkpoint checkpoint);

// The run's newest good checkpoint, if it has one.
Start FindStart(const Job& job, const RunDirectory& directory, const Log& log);

// Every member calls it: all begin where rank `root` does, whose `own` start is given. The others
// need no access to the run. The weights travel once along a chain, and so do the checkpoint's
// files.
Start ShareStart(Group& group, int root, const Job& job, const Start* own);

}  // namespace trireme
