#pragma once
#include <string>
#include <vector>

#include "base/sections.h"
#include "data/source.h"
#include "recipe/recipe.h"
#include "strategy/step/work.h"

namespace trireme {

// Keys that a run without a recipe leaves open: they are chosen for its data. (A recipe that leaves
// a key out means the key's default; a run of it repeats what it was.)
struct OpenKeys {
  bool size = false;  // of pictures
  bool centre = false;
  bool model = false;
  bool rate = false;
  bool schedule = false;
  bool warmup = false;
  bool normalize = false;

  bool any() const { return size || centre || model || rate || schedule || warmup || normalize; }
};

// Of a command line that follows no recipe.
OpenKeys FindOpenKeys(const Sections& sections);

// Before the data are opened: small pictures are seen at their own size, and whole. What was
// chosen, in words; empty if nothing was.
std::string FillOpenSize(const OpenKeys& open, DataOptions& data);

// Fills what else is open, by the rows of models (graph/models/models.h) and of optimizers
// (optimizer/rules.h). What was chosen, in words; empty if nothing was.
std::string FillOpenKeys(const OpenKeys& open, const DataSet& data, const Plan& plan,
                         Recipe& recipe);

// What data.normalize weights of another network were trained with, as far as it can be told: in
// a checkpoint of a run that run's; in a file with PyTorch's names for a resnet torchvision's.
// Empty: not known.
std::string NormalizationOfWeights(const std::string& file, const std::string& model);

// What a command line gives an optimizer that is not meant for it, a sentence each.
std::vector<std::string> OptimizerRemarks(const Sections& sections,
                                          const OptimizerOptions& optimizer);

}  // namespace trireme
