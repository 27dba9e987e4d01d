#include "graph/models/models.h"

#include <algorithm>

#include "base/error.h"
#include "graph/models/cnn.h"
#include "graph/models/freeze.h"
#include "graph/models/mlp.h"
#include "graph/models/onnx_model.h"
#include "graph/models/resnet.h"
#include "graph/models/text_model.h"
#include "graph/models/vit.h"
#include "graph/op.h"

namespace trireme {
namespace {

constexpr Shape kImageNet{224, 224, 3};

const ModelDef kModels[] = {
    {"mlp",
     "mlp[:IN-HIDDEN-...-CLASSES]",
     "dense layers; * for IN or CLASSES: as the data; without sizes, one hidden layer of 200",
     {28, 28, 1},
     10,
     BuildMlp},
    {"cnn",
     "cnn",
     "three convolutions and two dense layers, for images of 28 and 32 px",
     {28, 28, 1},
     10,
     BuildCnn},
    {"resnet18", "resnet18", "residual network of 18 layers", kImageNet, 1000, BuildResNet18, true},
    {"resnet34", "resnet34", "residual network of 34 layers", kImageNet, 1000, BuildResNet34, true},
    {"resnet50", "resnet50", "residual network of 50 layers, bottlenecks", kImageNet, 1000,
     BuildResNet50, true},
    {"resnet101", "resnet101", "residual network of 101 layers, bottlenecks", kImageNet, 1000,
     BuildResNet101, true},
    {"resnet152", "resnet152", "residual network of 152 layers, bottlenecks", kImageNet, 1000,
     BuildResNet152, true},
    {"vit_ti", "vit_ti", "vision transformer, tiny", kImageNet, 1000, BuildVitTi, true, "adamw"},
    {"vit_s", "vit_s", "vision transformer, small", kImageNet, 1000, BuildVitS, true, "adamw"},
    {"vit_b", "vit_b", "vision transformer, base", kImageNet, 1000, BuildVitB, true, "adamw"},
    {.name = "text",
     .pattern = "text:FILE",
     .summary = "a network as text, from a file or model.layers",
     .typical = {28, 28, 1},
     .typical_classes = 10,
     .build = BuildText,
     .read = [](const std::string& file) { return WrittenNetwork{.layers = ReadLayers(file)}; }},
    {.name = "onnx",
     .pattern = "onnx:FILE",
     .summary = "a network from an ONNX file, with its weights",
     .typical = {28, 28, 1},
     .typical_classes = 10,
     .build = BuildText,
     .read = ReadOnnxModel},
};

constexpr int kFolds = 4;   // a cnn halves its pictures twice
constexpr int kPhoto = 48;  // pixels across: beyond, a cnn sees too little at once

constexpr InputKind kInputKinds[] = {
    {"rows of numbers", [](Shape input) { return std::min(input.height, input.width) < kFolds; },
     "mlp", /*table=*/true},
    {"small images", [](Shape input) { return std::max(input.height, input.width) <= kPhoto; },
     "cnn"},
    {"photos", [](Shape) { return true; }, "resnet18"},
};

}  // namespace

std::span<const ModelDef> AllModels() { return kModels; }
std::span<const InputKind> InputKinds() { return kInputKinds; }

const InputKind& KindOf(Shape input) {
  return *std::ranges::find_if(kInputKinds,
                               [&](const InputKind& kind) { return kind.holds(input); });
}

const ModelDef& FindModel(const std::string& name) {
  const std::string family = name.substr(0, name.find(':'));
  std::string known;
  for (const ModelDef& model : kModels) {
    if (model.name == family) return model;
    known += (known.empty() ? "" : ", ") + std::string(model.pattern);
  }
  throw UsageError("model.name: there is no model \"{}\"; choose from {}", family, known);
}

std::string AfterColon(const std::string& name) {
  const size_t colon = name.find(':');
  return colon == std::string::npos ? "" : name.substr(colon + 1);
}

const ModelDef& TextModel() { return FindModel("text"); }

Graph BuildModel(const ModelOptions& options, Shape input, int classes) {
  if (classes < 1) throw UsageError("a network needs at least 1 output, got {}", classes);
  const ModelDef& model = FindModel(options.name);
  const std::string sizes = AfterColon(options.name);
  if (options.name.ends_with(':')) {
    throw UsageError("model.name \"{}\": nothing follows the colon", options.name);
  }
  Graph graph = model.build(options, sizes, input, classes);
  if (!options.freeze.empty()) Freeze(graph, options.freeze);
  return graph;
}

ModelSize Measure(const Graph& graph) {
  ModelSize size;
  for (const ParameterSpec& spec : graph.parameters) size.parameters += spec.size();
  for (const Node& node : graph.nodes) {
    if (!node.backward) size.multiply_adds += CountWork(graph, node).multiply_adds;
  }
  return size;
}

std::string ModelsPage() {
  std::string page =
      fmt::format("  {:<28} {:>12} {:>14}  {}\n", "name", "parameters", "multiply-adds",
                  "what it is (counted for this input and number of classes)");
  for (const ModelDef& model : kModels) {
    if (model.read) {
      page += fmt::format("  {:<28} {:>12} {:>14}  {}\n", model.pattern, "-", "-", model.summary);
      continue;
    }
    const ModelSize size =
        Measure(BuildModel({.name = model.name}, model.typical, model.typical_classes));
    page += fmt::format("  {:<28} {:>12} {:>12.2f} M  {} ({}, {})\n", model.pattern,
                        size.parameters, size.multiply_adds / 1e6, model.summary,
                        ToText(model.typical), model.typical_classes);
  }
  return page;
}

}  // namespace trireme
