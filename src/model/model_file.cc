#include "model/model_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "flat/cpu/loops.h"
#include "graph/layout.h"
#include "graph/models/layer_names.h"
#include "record/parameters_hash.h"

namespace trireme {
namespace {

// Parameters of the layer that makes the logits: they depend on the number of classes.
std::set<int> LastLayer(const Graph& graph) {
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (!node->parameters.empty()) return {node->parameters.begin(), node->parameters.end()};
  }
  return {};
}

void ReadTensor(const FileTensor& tensor, const StateReader& reader, std::span<float> state,
                std::vector<float>& scratch) {
  scratch.resize(tensor.range.size);
  reader.Tensor(tensor.spec->name, FileShape(*tensor.spec), scratch);
  FromFile(*tensor.spec, scratch, state.subspan(tensor.range.begin, tensor.range.size));
}

bool OnlyClassesDiffer(const std::vector<int64_t>& file, const std::vector<int64_t>& model) {
  return file.size() == model.size() && !file.empty() && file[0] != model[0] &&
         std::equal(file.begin() + 1, file.end(), model.begin() + 1);
}

// A file whose names are those of the model with a prefix, as a wrapped model writes them.
void RefusePrefix(const std::string& name, const StateReader& reader) {
  if (reader.Has(name)) return;
  for (const std::string& other : reader.TensorNames()) {
    if (!other.ends_with("." + name)) continue;
    throw Error(
        "--init: the file has no tensor \"{}\", but its names begin with \"{}\"; save it without "
        "this prefix",
        name, other.substr(0, other.size() - name.size()));
  }
}

// A resnet's first layer depends on the size of the pictures, given weights do not.
void RefuseOtherStem(const std::string& name, const std::vector<int64_t>& file,
                     const std::vector<int64_t>& model) {
  if (name != "conv1.weight" || file.size() != 4 || model.size() != 4 || file[3] == model[3])
    return;
  if (file[3] != 3 && file[3] != 7) return;
  throw Error(
      "--init: the file's first layer is {0}x{0}, but the model's is {1}x{1}; use "
      "--set model.stem={0}x{0}",
      file[3], model[3]);
}

std::string LayerOf(const std::string& tensor) { return tensor.substr(0, tensor.rfind('.')); }

void RefuseOtherShape(const std::string& name, const std::vector<int64_t>& file,
                      const std::vector<int64_t>& model) {
  if (file == model) return;
  throw Error(
      "--init: tensor \"{}\" is {} in the file, but {} in the model; to start this layer from "
      "random "
      "weights use --set trainer.init_except={}",
      name, fmt::join(file, "x"), fmt::join(model, "x"), LayerOf(name));
}

bool IsWithinAny(const std::string& tensor, const std::vector<std::string>& layers) {
  return std::ranges::any_of(layers,
                             [&](const std::string& layer) { return IsWithin(tensor, layer); });
}

std::vector<std::string> ExceptedLayers(const Graph& graph, std::string_view except) {
  std::vector<std::string> layers = Split(except, ' ');
  std::erase(layers, "");
  for (const std::string& layer : layers) {
    const auto within = [&](const ParameterSpec& spec) { return IsWithin(spec.name, layer); };
    if (std::ranges::any_of(graph.parameters, within)) continue;
    throw UsageError("trainer.init_except: the network has no layer \"{}\" with weights; it has {}",
                     layer, LikelyLayers(graph, layer));
  }
  return layers;
}

}  // namespace

std::vector<FileTensor> FileTensors(const Graph& graph, const Layout& layout) {
  std::vector<FileTensor> tensors;
  for (const Node& node : graph.nodes) {
    for (const int p : node.parameters) {
      tensors.push_back({&graph.parameters[p], layout.parameters[p]});
    }
    for (const int s : node.statistics) {
      tensors.push_back({&graph.statistics[s], layout.statistics[s]});
    }
  }
  return tensors;
}

void WriteModel(const Graph& graph, const Layout& layout, std::span<const float> state,
                StateWriter& writer) {
  std::vector<float> scratch;
  for (const FileTensor& tensor : FileTensors(graph, layout)) {
    scratch.resize(tensor.range.size);
    ToFile(*tensor.spec, state.subspan(tensor.range.begin, tensor.range.size), scratch);
    writer.Tensor(tensor.spec->name, FileShape(*tensor.spec), scratch);
  }
}

void ReadModel(const Graph& graph, const Layout& layout, const StateReader& reader,
               std::span<float> state) {
  std::vector<float> scratch;
  for (const FileTensor& tensor : FileTensors(graph, layout)) {
    ReadTensor(tensor, reader, state, scratch);
  }
}

void InitModel(const Graph& graph, const Layout& layout, const StateReader& reader,
               std::span<float> state, const Log& log, std::string_view except) {
  const std::set<int> last = LastLayer(graph);
  const std::vector<std::string> excepted = ExceptedLayers(graph, except);
  std::set<std::string> known;
  std::vector<float> scratch;
  std::string classes;  // of a last layer for others
  for (const FileTensor& tensor : FileTensors(graph, layout)) {
    const std::string& name = tensor.spec->name;
    known.insert(name);
    if (IsWithinAny(name, excepted)) continue;
    RefusePrefix(name, reader);
    if (!reader.Has(name)) ReadTensor(tensor, reader, state, scratch);  // says so
    const auto in_file = reader.Shape(name), in_model = FileShape(*tensor.spec);
    RefuseOtherStem(name, in_file, in_model);
    const bool in_last = std::any_of(last.begin(), last.end(),
                                     [&](int p) { return &graph.parameters[p] == tensor.spec; });
    if (in_last && OnlyClassesDiffer(in_file, in_model)) {
      classes = fmt::format("{} (for {} classes in the file, for {} here)", LayerOf(name),
                            in_file[0], in_model[0]);
      continue;
    }
    RefuseOtherShape(name, in_file, in_model);
    ReadTensor(tensor, reader, state, scratch);
  }
  std::vector<std::string> fresh = excepted;
  if (!classes.empty()) fresh.push_back(classes);
  if (!fresh.empty()) {
    log.Warn("init", "random weights, not the file's, for {}", fmt::join(fresh, ", "));
  }
  std::vector<std::string> others;
  for (const std::string& name : reader.TensorNames()) {
    // PyTorch counts the batches that a batch-norm has seen; nothing depends on it.
    if (!known.count(name) && !name.ends_with("num_batches_tracked")) others.push_back(name);
  }
  if (!others.empty()) {
    log.Warn("init", "{} tensors of the file are not in the model and were ignored: {}{}",
             others.size(),
             fmt::join(others.begin(), others.begin() + std::min<size_t>(3, others.size()), ", "),
             others.size() > 3 ? ", ..." : "");
  }
}

std::string FirstNotFinite(const Graph& graph, const Layout& layout, std::span<const float> state) {
  for (const FileTensor& tensor : FileTensors(graph, layout)) {
    const auto values = state.subspan(tensor.range.begin, tensor.range.size);
    if (!std::isfinite(loops::Largest(values.data(), values.size()))) return tensor.spec->name;
  }
  return "";
}

std::string HashModel(const Graph& graph, const Layout& layout, std::span<const float> state) {
  ParametersHash hash;
  WriteModel(graph, layout, state, hash);
  return hash.Hex();
}

}  // namespace trireme
