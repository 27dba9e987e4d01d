#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/element.h"

namespace trireme {

// A graph says what to compute: operations on shapes. It knows no memory, device or rank.
// Shapes are those of one sample, height x width x channels (NHWC); the number of samples comes
// with each batch.

struct Shape {
  int height = 1, width = 1, channels = 1;
  int64_t size() const { return int64_t{height} * width * channels; }
  bool operator==(const Shape&) const = default;
};
std::string ToText(const Shape& shape);  // 28x28x1, or 10 for 1x1x10

// One value that flows along an edge.
struct ValueSpec {
  Shape shape;
  bool per_sample = true;  // false: one for the whole shard (a channel's mean)
  Element element = Element::kFloat;

  int64_t bytes(int64_t samples) const {
    return shape.size() * (per_sample ? samples : 1) * BytesOf(element);
  }
  bool operator==(const ValueSpec&) const = default;
};
using ValueId = int;

// How a parameter lies in safetensors files (torchvision's order); in memory it is always
// [input...][output], the order in which matrix products read it.
enum class FileForm {
  kPlain,   // as it is
  kDense,   // memory [in][out], file [out][in]
  kConv2d,  // memory [kh][kw][in][out], file [out][in][kh][kw]
};

enum class Initial {
  kZero,
  kOne,
  kHeFanOut,
  kUniformFanIn,
  kXavierUniform,  // of a dense layer
  kEmbedding,      // normal, deviation 0.02
};

struct ParameterSpec {
  std::string name;            // torchvision's: layer1.0.conv1.weight (empty: the layer's name)
  std::vector<int64_t> shape;  // in memory order
  FileForm form = FileForm::kPlain;
  Initial initial = Initial::kZero;
  bool decays = false;  // weight decay applies
  int64_t fan_in = 1;   // for kUniformFanIn
  Shape flattened;      // kDense behind a flatten: the shape before it, else 1x1xin
  int64_t size() const;
};

// What the operations are told beside their inputs. One record for all: few fields, each used by
// several operations, and kernels read them without a search.
struct Attributes {
  int channels = 0;  // of the output: dense, conv2d
  int kernel = 1, stride = 1, padding = 0;
  bool bias = true;       // dense, conv2d
  bool affine = true;     // layer_norm
  bool tokens = false;    // dense, layer_norm: each pixel is a token, handled by itself
  int heads = 1;          // attention
  float epsilon = 1e-5f;  // batch_norm, layer_norm
  float rate = 0;         // dropout: share of values set to zero; stochastic_depth: of samples
  float smoothing = 0;    // softmax_cross_entropy: label smoothing
  int layer = 0;          // dropout, stochastic_depth: which one, for its random numbers
  int choice = 0;         // of the engine, where it can compute an operation in several ways
};

struct OpDef;

struct Node {
  const OpDef* op = nullptr;
  std::string name;  // of the layer, "conv1"
  std::string how;   // the engine's choice in words, "winograd f4"; empty: the plain way
  Attributes attributes;
  std::vector<ValueId> inputs, outputs;
  std::vector<int> parameters;  // indices into Graph::parameters
  std::vector<int> statistics;  // indices into Graph::statistics
  bool backward = false;
  // It and all before it are not trained: they compute as in evaluation, and backward ends behind
  // them.
  bool frozen = false;
  // Of a fused operation, and of its gradients: the nodes that it stands for, in order. Parameters
  // and statistics above are those of all parts, attributes the first's. Values between two parts
  // have a specification, but nobody else reads them and they lie nowhere.
  std::vector<Node> parts = {};
};

// Values 0.. are numbered; value 0 is the input. The last forward node is the loss: its input 0 is
// the network's output (the logits), its output 0 the loss of each sample.
struct Graph {
  std::vector<ValueSpec> values;
  std::vector<Node> nodes;  // in an order in which they can be computed
  std::vector<ParameterSpec> parameters;
  std::vector<ParameterSpec> statistics;

  const Node& loss() const;
  ValueId logits() const { return loss().inputs[0]; }
  int num_classes() const { return values[logits()].shape.channels; }
  Shape input() const { return values[0].shape; }
};

// Builds the forward graph of a model.
class Builder {
 public:
  explicit Builder(Shape input);

  // Adds an operation and returns its first output; `name` prefixes its parameters' names.
  // Throws Error when the shapes do not fit.
  ValueId Add(std::string_view op, std::vector<ValueId> inputs, const Attributes& attributes = {},
              std::string_view name = {});
  ValueId input() const { return 0; }
  Shape shape(ValueId value) const { return graph_.values[value].shape; }
  Graph Finish(std::string_view loss, ValueId logits, float smoothing = 0) &&;

 private:
  Graph graph_;
  int num_dropouts_ = 0;
};

}  // namespace trireme
