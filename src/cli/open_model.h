#pragma once
#include "base/log.h"
#include "cli/args.h"
#include "engine/engines.h"
#include "model/saved_model.h"

namespace trireme {

// The model of a run and what computes it.
struct OpenedModel {
  SavedModel model;
  Backend backend;
};

// For commands with the place RUN and the flag --checkpoint: the recipe is the run's, with the keys
// that the command line gives.
OpenedModel OpenModel(const Args& args, const Log& log);

}  // namespace trireme
