#include "graph/models/onnx_model.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "graph/models/onnx_text.h"
#include "graph/parameter_name.h"

namespace trireme {
namespace {

constexpr size_t kLongestFile = (size_t{2} << 30) - 1;  // of a message of protocol buffers

}  // namespace

OnnxNetwork::OnnxNetwork(const std::string& path) : path_(path) {
  try {
    file_ = std::make_unique<const OnnxFile>(ReadFile(path, kLongestFile));
    layers_ = ReadOnnxLayers(*file_);
    OnnxText written = WriteOnnxText(layers_);
    text_ = std::move(written.text);
    for (size_t i = 0; i < layers_.layers.size(); ++i) {
      if (written.names[i].empty()) continue;
      for (const OnnxWeight& weight : layers_.layers[i].weights) {
        weights_[FullName(written.names[i], weight.name)] = &weight;
      }
    }
  } catch (const Error& error) {
    const std::string what = error.what();
    const bool named = what.find(path) != what.npos;
    throw UsageError("{}", named ? what : fmt::format("{}{}: {}", kOnnxPrefix, path, what));
  }
}

OnnxNetwork::~OnnxNetwork() = default;

bool OnnxNetwork::Has(std::string_view name) const { return weights_.contains(name); }

std::vector<std::string> OnnxNetwork::TensorNames() const {
  std::vector<std::string> names;
  for (const auto& [name, weight] : weights_) names.push_back(name);
  return names;
}

const OnnxWeight& OnnxNetwork::Find(std::string_view name) const {
  const auto found = weights_.find(name);
  if (found == weights_.end()) throw Error("{}{}: has no tensor \"{}\"", kOnnxPrefix, path_, name);
  return *found->second;
}

std::vector<int64_t> OnnxNetwork::Shape(std::string_view name) const { return Find(name).shape; }

void OnnxNetwork::Tensor(std::string_view name, std::span<const int64_t> shape,
                         std::span<float> out) const {
  const OnnxWeight& weight = Find(name);
  if (!std::ranges::equal(weight.shape, shape)) {
    throw Error("{}{}: tensor \"{}\" is {}, but the model has {}; the data may have another size",
                kOnnxPrefix, path_, name, ExtentsText(weight.shape),
                ExtentsText({shape.begin(), shape.end()}));
  }
  try {
    std::ranges::copy(weight.Values(), out.begin());
  } catch (const Error& error) {
    throw Error("{}{}: {}", kOnnxPrefix, path_, error.what());
  }
}

int64_t OnnxNetwork::Int(std::string_view name) const {
  Find(name);
  throw Error("{}{}: \"{}\" is a tensor", kOnnxPrefix, path_, name);
}
std::vector<int64_t> OnnxNetwork::Ints(std::string_view name) const { return {Int(name)}; }
double OnnxNetwork::Real(std::string_view name) const { return double(Int(name)); }
std::string OnnxNetwork::Text(std::string_view name) const { return std::to_string(Int(name)); }

WrittenNetwork ReadOnnxModel(const std::string& file) {
  const OnnxNetwork network(file);
  WrittenNetwork written{.layers = network.text(), .weights = std::string(kOnnxPrefix) + file};
  const OnnxLayers& layers = network.layers();
  const bool possible = std::ranges::all_of(
      layers.scale, [](double scale) { return std::isfinite(scale) && scale > 0; });
  for (size_t i = 0; possible && i < layers.scale.size(); ++i) {
    written.mean.push_back(0 - layers.shift[i] / layers.scale[i]);
    written.deviation.push_back(1 / layers.scale[i]);
  }
  return written;
}

}  // namespace trireme
