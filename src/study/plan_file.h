#pragma once
#include <string>

#include "record/json.h"

namespace trireme {

// A study's folder holds its plan (plan.json), so that a study that was interrupted goes on and
// another one is not mixed into it. Written where there is none; a UsageError where it differs.
// `what`: "sweep". The member "config", a whole recipe, is not quoted in the message.
void AdoptPlan(const std::string& out, const Json& plan, const char* what);

}  // namespace trireme
