#pragma once
#include <span>

#include "data/source.h"
#include "model/mistakes.h"
#include "record/json.h"

namespace trireme {

// mistakes.json: what was said of test samples and what they are, with a picture of each or the
// fields of its row. Reads those samples once more.
Json MistakesJson(const DataSet& data, std::span<const Mistake> mistakes);

}  // namespace trireme
