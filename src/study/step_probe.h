#pragma once
#include "recipe/recipe.h"
#include "study/step_model.h"

namespace trireme {

// The parts of a model's step that only its graph can say: gradients in the order in which backward
// finishes them, and how backward's time divides among them, measured here with a few samples.
// Opens the recipe's data.
StepModel ProbeStretches(const Recipe& recipe);

// All of it, measured here on one rank: some seconds.
StepModel ProbeStep(const Recipe& recipe);

}  // namespace trireme
