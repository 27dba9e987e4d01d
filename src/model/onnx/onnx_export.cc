#include "model/onnx/onnx_export.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "graph/op.h"
#include "model/onnx/onnx_graph.h"
#include "model/onnx/onnx_input.h"
#include "model/onnx/onnx_rules.h"
#include "record/json.h"

namespace trireme {
namespace {

// Messages of protocol buffers are at most 2 GiB long.
constexpr double kLongestMessage = 2e9;

void RefuseWhatOnnxLacks(const SavedModel& model) {
  std::map<std::string, std::vector<std::string>> missing;  // names of layers by operation
  for (const Node& node : model.graph.nodes) {
    if (&node == &model.graph.loss() || FindOnnxRule(node.op->name)) continue;
    missing[node.op->name].push_back(node.name);
  }
  if (!missing.empty()) {
    std::vector<std::string> kinds;
    for (const auto& [op, names] : missing) {
      constexpr size_t kShown = 3;
      const auto shown = std::span(names).first(std::min(names.size(), kShown));
      kinds.push_back(fmt::format(
          "{} ({}{})", op, fmt::join(shown, ", "),
          names.size() > kShown ? fmt::format(" and {} more", names.size() - kShown) : ""));
    }
    throw Error("the network cannot be written as ONNX: there is no rule for {}",
                fmt::join(kinds, ", "));
  }
  const double bytes = 4.0 * double(model.layout.state);
  if (bytes > kLongestMessage) {
    throw Error("the network has {} of weights; an ONNX file holds at most {}", FormatBytes(bytes),
                FormatBytes(kLongestMessage));
  }
}

void AddOutputs(OnnxGraph& onnx, const std::string& logits, const SavedModel& model) {
  const std::vector<int64_t> shape = {model.graph.num_classes()};
  if (const auto& target = model.card.normalizer.target()) {
    // Networks learn standard numbers; outside they have their own unit.
    const auto number = [&](const char* name, double value) {
      const auto narrow = float(value);
      return onnx.Floats(name, {1}, std::span(&narrow, 1));
    };
    const std::string scaled =
        onnx.Add("Mul", {logits, number("data.target_deviation", target->deviation)});
    onnx.Output("prediction", onnx.Add("Add", {scaled, number("data.target_mean", target->mean)}),
                shape);
    return;
  }
  onnx.Output("logits", logits, shape);
  const bool softmax = std::string_view(model.graph.loss().op->name) == "softmax_cross_entropy";
  onnx.Output("probabilities",
              softmax ? onnx.Add("Softmax", {logits}, OnnxAttributes().Int("axis", 1)) : logits,
              shape);
}

}  // namespace

std::string OnnxBytes(const SavedModel& model) {
  RefuseWhatOnnxLacks(model);
  OnnxGraph onnx;
  OnnxRuleContext context{onnx, model};
  const Graph& graph = model.graph;
  const Shape input = graph.input();
  std::map<ValueId, OnnxValue> values;
  const bool image = input.height > 1 || input.width > 1;
  values[0] = {AddOnnxInput(onnx, model.card), input, image ? OnnxForm::kImage : OnnxForm::kRow,
               input};
  const Node& loss = graph.loss();
  for (const Node& node : graph.nodes) {
    if (&node == &loss) break;
    context.node = &node;
    context.inputs.clear();
    for (const ValueId value : node.inputs) context.inputs.push_back(values.at(value));
    values[node.outputs[0]] = FindOnnxRule(node.op->name)(context);
  }
  context.inputs = {values.at(graph.logits())};
  AddOutputs(onnx, context.Row().name, model);
  return onnx.Bytes(model.recipe.model.name, {{"classes", Json(model.card.classes).Text()},
                                              {"step", fmt::format("{}", model.step)}});
}

}  // namespace trireme
