#pragma once
#include <span>
#include <string>

#include "graph/graph.h"
#include "graph/models/options.h"

namespace trireme {

// One model, or a family whose members differ in what follows a colon.
struct ModelDef {
  const char* name;     // "resnet18"; for "mlp:784-200-10" the part before the colon
  const char* pattern;  // what a user writes
  const char* summary;  // one line for `trireme list models`
  Shape typical;        // an input and a number of classes for the list
  int typical_classes;
  // `sizes` is what follows the colon, empty if nothing does. Throws UsageError for options that
  // the model cannot use.
  Graph (*build)(const ModelOptions& options, const std::string& sizes, Shape input, int classes);
};

// The one list of models (graph/models/models.cc).
std::span<const ModelDef> AllModels();

// Throws UsageError when no model has the name or an option does not fit.
Graph BuildModel(const ModelOptions& options, Shape input, int classes);

struct ModelSize {
  int64_t parameters = 0;
  double multiply_adds = 0;  // forward, one sample
};
ModelSize Measure(const Graph& graph);

// `trireme list models`: a table of all models with their sizes.
std::string ModelsPage();

}  // namespace trireme
