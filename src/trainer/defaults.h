#pragma once
#include <span>
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
  bool no_recipe = false;          // else nothing is open
  std::vector<std::string> given;  // the paths of all keys that somebody gave
  bool size = false;               // of pictures
  bool centre = false;
  bool model = false;
  bool rate = false;
  bool schedule = false;
  bool warmup = false;
  bool normalize = false;
  bool batch = false;
  bool epochs = false;      // and steps
  bool evaluate = false;    // how often; only where epochs are open
  bool checkpoint = false;  // likewise
  bool optimizer = false;
  bool decay = false;
};

// What suits a table (rows of numbers) with fewer than so many training rows.
struct TableRule {
  int64_t below;
  const char* hidden;  // sizes of the hidden layers, if nobody names a model
  int64_t batch;
  double epochs;
  double decay;  // optimizer.weight_decay, with adamw
};
// The one list of them (trainer/defaults.cc); the first that holds counts.
std::span<const TableRule> TableRules();
const TableRule& RuleFor(int64_t samples);

// What suits pictures: the keys of a recipe of the program, but for those that somebody gave.
struct PictureRule {
  const char* words;  // InputKind::words
  int channels;       // 0: any
  int64_t below;      // training samples
  const char* recipe;
  double epochs;
  const char* uncut;  // data.augment if pictures are not cut when they are read; null: the recipe's
};
// The one list of them (trainer/defaults.cc). Null: the pictures have no rule, only a model.
std::span<const PictureRule> PictureRules();
const PictureRule* RuleFor(const SampleShape& shape, int64_t samples);

// Of a command line that follows no recipe.
OpenKeys FindOpenKeys(const Sections& sections);

// Before the data are opened: pictures are seen at a size that suits theirs, small ones whole.
// Given weights keep the usual size, except of small pictures. What was chosen, in words; empty if
// nothing was.
std::string FillOpenSize(const OpenKeys& open, bool given_weights, DataOptions& data);

// Once the data are open, and before they are cut into steps: for tables the optimizer, the batch
// and the number of epochs, by the rows of TableRules. What was chosen, in words.
std::string FillOpenTable(const OpenKeys& open, const DataSet& data, Recipe& recipe);

// Likewise for pictures, by the rows of PictureRules. What it fills is no longer open.
std::string FillOpenPictures(OpenKeys& open, const DataSet& data, Recipe& recipe);

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
