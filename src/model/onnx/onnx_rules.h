#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/onnx/onnx_graph.h"
#include "model/saved_model.h"

namespace trireme {

// ONNX has images as channels x height x width, we have height x width x channels: parameters are
// put into its order on the way.

// The axes behind the samples.
enum class OnnxForm {
  kRow,     // values
  kImage,   // channels, height, width
  kTokens,  // tokens, channels
};

// A value of the network in the file.
struct OnnxValue {
  std::string name;
  Shape shape;  // as in our graph
  OnnxForm form = OnnxForm::kRow;
  Shape flattened;  // of a row: the image whose values these are, or 1x1xchannels
};

// What a rule sees of a node and its model.
struct OnnxRuleContext {
  OnnxGraph& onnx;
  const SavedModel& model;
  const Node* node = nullptr;
  std::vector<OnnxValue> inputs = {};

  const Attributes& attributes() const { return node->attributes; }
  std::span<const float> parameter(int i) const;
  std::span<const float> statistic(int i) const;
  std::string NameOf(int parameter) const;
  std::string NameOfStatistic(int statistic) const;

  // The input in that form.
  OnnxValue Image(int input = 0);
  OnnxValue Row(int input = 0);
  OnnxValue Tokens(int input = 0);
  OnnxValue As(OnnxForm form, int input = 0);
  // A row whose values are those of an image stands in ONNX's order: as one of 1x1xchannels.
  OnnxValue InOurOrder(OnnxValue row);
  // What the node makes: of the shape in our graph.
  OnnxValue Made(std::string name, OnnxForm form, Shape flattened = {}) const;
};

int64_t CountTokens(const Shape& shape);

// Values [places][channels] as [channels][places], where `image` says how many there are of each.
std::vector<float> ChannelsFirst(std::span<const float> values, const Shape& image);

// How an operation is said in ONNX: a row of one list. Null: not at all.
using OnnxRule = OnnxValue (*)(OnnxRuleContext&);
OnnxRule FindOnnxRule(std::string_view op);

}  // namespace trireme
