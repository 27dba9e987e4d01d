#pragma once
#include "base/observer.h"
#include "trainer/job.h"
#include "trainer/start.h"
#include "trainer/train.h"
#include "transport/world.h"

namespace trireme {

// The life of one rank whose optimizer minimises the loss of all samples at once
// (trainer/batch_train.h); its exit code.
int RunBatchRank(const Job& job, const RunContext& context, const Start& start, World& world,
                 SpanSink* spans);

}  // namespace trireme
