#pragma once
#include <string>
#include <vector>

#include "base/log.h"
#include "flat/layout.h"
#include "graph/graph.h"
#include "model/model_card.h"
#include "recipe/recipe.h"

namespace trireme {

// A trained model as a run left it: its recipe, what it remembers of its data, its weights.
struct SavedModel {
  Recipe recipe;
  ModelCard card;
  Graph graph;
  Layout layout;
  std::vector<float> state;
  int64_t step = 0;
};

// A checkpoint of the run: "last", "best" or a step. Works while the run goes on.
SavedModel LoadSavedModel(const std::string& run, const Log& log,
                          const std::string& which = "last");

// Weights are float32 whatever trained them, so a machine without the run's device or precision can
// use them: what it has instead, with a warning where that is another device. `given`: the user
// chose the device.
void ChooseDeviceHere(TrainerOptions& trainer, bool given, const Log& log);

}  // namespace trireme
