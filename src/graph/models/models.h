#pragma once
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/models/options.h"

namespace trireme {

// A network whose layers are written down, as its file has it.
struct WrittenNetwork {
  std::string layers;   // for model.layers
  std::string weights;  // for trainer.init; empty: the file has none
  // What the file does to pixels from 0 to 1, or to numbers, before the first layer: data.mean and
  // data.deviation; empty: nothing.
  std::vector<double> mean, deviation;
};

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
  bool warms_up = false;  // deep: the rate of its first steps grows, where nobody says otherwise
  const char* optimizer = nullptr;  // that it wants, likewise; null: what its data want
  // Its layers are written in model.layers; this reads the file that follows the colon. Null: it is
  // no such model.
  WrittenNetwork (*read)(const std::string& file) = nullptr;
};

// The one list of models (graph/models/models.cc).
std::span<const ModelDef> AllModels();

// Of "mlp:784-200-10" the row of mlp. Throws UsageError when no model has the name.
const ModelDef& FindModel(const std::string& name);
// What follows the colon of a model's name; empty: nothing does.
std::string AfterColon(const std::string& name);
// The row of networks that no file needs to say.
const ModelDef& TextModel();

// What a network may see, and the model for it where nobody names one.
struct InputKind {
  const char* words;
  bool (*holds)(Shape input);
  const char* model;
  bool table = false;  // no picture
};

// The one list of kinds (graph/models/models.cc); the first that holds counts.
std::span<const InputKind> InputKinds();
const InputKind& KindOf(Shape input);

// `classes`: the outputs; a single one is a number. Throws UsageError when no model has the name or
// an option does not fit.
Graph BuildModel(const ModelOptions& options, Shape input, int classes);

struct ModelSize {
  int64_t parameters = 0;
  double multiply_adds = 0;  // forward, one sample
};
ModelSize Measure(const Graph& graph);

// For `trireme list models`: one line per model, with its size.
std::string ModelsPage();

}  // namespace trireme
