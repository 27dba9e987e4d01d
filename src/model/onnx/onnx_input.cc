#include "model/onnx/onnx_input.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace trireme {
namespace {

constexpr char kInput[] = "input";
constexpr int64_t kFloatType = 1;

// Of numbers with missing ones: filled in, and whether they were missing.
struct FilledColumns {
  std::string numbers, flags;
};

FilledColumns FillIn(OnnxGraph& onnx, const std::string& raw, const std::vector<float>& fills) {
  const std::string missing = onnx.Add("IsNaN", {raw});
  const std::string fill = onnx.Floats("data.fill", {1, int64_t(fills.size())}, fills);
  return {onnx.Add("Where", {missing, fill, raw}),
          onnx.Add("Cast", {missing}, OnnxAttributes().Int("to", kFloatType))};
}

float FillOf(const ColumnCode& code) {
  return code.fill.value_or(std::numeric_limits<float>::quiet_NaN());
}

std::string NameOfColumn(const ModelCard& card, size_t column) {
  const auto& names = card.columns.values;
  const bool named = column < names.size() && !names[column].empty();
  return named ? names[column] : fmt::format("column_{}", column + 1);
}

// All columns are numbers: one input for all of them.
std::string AddNumbers(OnnxGraph& onnx, const ColumnCodes& codes) {
  const auto columns = int64_t(codes.size());
  const std::string raw = onnx.Input(kInput, OnnxType::kFloat, {columns});
  std::vector<float> fills;
  std::vector<int64_t> places;  // in the numbers with the flags behind them
  for (int64_t i = 0; i < columns; ++i) {
    const ColumnCode& code = codes[size_t(i)];
    fills.push_back(FillOf(code));
    places.push_back(i);
    if (code.flagged) places.push_back(columns + i);
  }
  const FilledColumns filled = FillIn(onnx, raw, fills);
  const std::string all =
      onnx.Add("Concat", {filled.numbers, filled.flags}, OnnxAttributes().Int("axis", 1));
  return onnx.Add("Gather", {all, onnx.Integers(places)}, OnnxAttributes().Int("axis", 1));
}

std::string AddColumns(OnnxGraph& onnx, const ModelCard& card) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < card.codes.size(); ++i) {
    const ColumnCode& code = card.codes[i];
    const OnnxType type = code.text() ? OnnxType::kText : OnnxType::kFloat;
    const std::string raw = onnx.Input(NameOfColumn(card, i), type, {1});
    if (code.text()) {
      const std::string hot =
          onnx.AddOfTables("OneHotEncoder", {raw},
                           OnnxAttributes().Texts("cats_strings", code.categories).Int("zeros", 1));
      parts.push_back(onnx.Add("Flatten", {hot}, OnnxAttributes().Int("axis", 1)));
      continue;
    }
    const FilledColumns filled = FillIn(onnx, raw, {FillOf(code)});
    parts.push_back(filled.numbers);
    if (code.flagged) parts.push_back(filled.flags);
  }
  return onnx.Add("Concat", parts, OnnxAttributes().Int("axis", 1));
}

}  // namespace

std::string AddOnnxInput(OnnxGraph& onnx, const ModelCard& card) {
  const SampleShape& shape = card.shape;
  const bool pictures = shape.height > 1 || shape.width > 1;
  std::string x;
  std::vector<int64_t> per_channel = {1, shape.channels};
  if (pictures) {
    x = onnx.Input(kInput, OnnxType::kFloat, {shape.channels, shape.height, shape.width});
    const float unit = 1.0f / 255;
    x = onnx.Add("Mul", {x, onnx.Floats("data.unit", {1}, std::span(&unit, 1))});
    per_channel.insert(per_channel.end(), {1, 1});
  } else if (std::ranges::any_of(card.codes, &ColumnCode::text)) {
    x = AddColumns(onnx, card);
  } else if (!card.codes.empty()) {
    x = AddNumbers(onnx, card.codes);
  } else {
    x = onnx.Input(kInput, OnnxType::kFloat, {shape.channels});
  }
  const Normalizer& normalizer = card.normalizer;
  x = onnx.Add("Mul", {x, onnx.Floats("data.scale", per_channel, normalizer.scale())});
  return onnx.Add("Add", {x, onnx.Floats("data.shift", per_channel, normalizer.shift())});
}

}  // namespace trireme
