#pragma once
#include <optional>
#include <string>

#include "base/function_ref.h"
#include "model/evaluation.h"
#include "record/metrics.h"
#include "trainer/dead_units.h"
#include "trainer/job.h"

namespace trireme {

// Whether a run has done enough steps to be judged, and more are to come.
bool IsTimeForHint(const Job& job, int64_t step);

// Of a run that has learned nothing so far, or takes every test sample for the same class: a
// sentence with the likely cause and the key to change. Empty if there is nothing to say.
// `find_dead` may be null; it is asked only of such a run.
std::string EarlyHint(const Job& job, const EpochRecord& record, const Evaluation& test,
                      FunctionRef<std::optional<DeadUnits>()> find_dead);

}  // namespace trireme
