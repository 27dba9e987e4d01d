#pragma once
#include "record/json.h"

namespace trireme {

// A result of a benchmark, as --json prints it, with where it comes from: `machine` (the processor,
// never a host's name), `cores` of the job, `version`, `commit`, and the machine's `load` (of the
// last minute, so this benchmark is in it).
Json WithOrigin(Json result);

}  // namespace trireme
