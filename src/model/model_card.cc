#include "model/model_card.h"

#include "base/error.h"
#include "record/json.h"

namespace trireme {
namespace {

Json CodesJson(const ColumnCodes& codes) {
  Json list = Json::Array();
  for (const ColumnCode& code : codes) {
    Json item = Json::Object();
    if (code.text()) item.Add("texts", code.categories);
    if (code.fill) item.Add("fill", double(*code.fill));
    if (code.flagged) item.Add("flagged", true);
    list.Append(std::move(item));
  }
  return list;
}

ColumnCodes ReadCodes(const Json& list) {
  ColumnCodes codes;
  for (const Json& item : list.Items()) {
    ColumnCode& code = codes.emplace_back();
    if (const Json* texts = item.Find("texts")) {
      for (const Json& text : texts->Items()) code.categories.push_back(text.AsString());
    }
    if (const Json* fill = item.Find("fill")) code.fill = float(fill->AsDouble());
    code.flagged = item.Find("flagged") != nullptr;
  }
  return codes;
}

}  // namespace

void ModelCard::Save(StateWriter& writer) const {
  const int64_t dims[] = {shape.height, shape.width, shape.channels};
  writer.Ints("data.shape", dims);
  writer.Text("data.classes", Json(classes).Text());
  writer.Ints("data.samples", samples);
  if (!columns.values.empty()) {
    writer.Text("data.columns", Json(columns.values).Text());
    writer.Text("data.label_column", columns.label);
    writer.Text("data.id_columns", Json(columns.ids).Text());
  }
  if (!layers.empty()) writer.Text("model.layers", layers);
  if (!codes.empty()) writer.Text("data.codes", CodesJson(codes).Text());
  const int64_t channels[] = {normalizer.channels()};
  writer.Tensor("data.scale", channels, normalizer.scale());
  writer.Tensor("data.shift", channels, normalizer.shift());
  if (const auto& target = normalizer.target()) {
    writer.Real("data.target_mean", target->mean);
    writer.Real("data.target_deviation", target->deviation);
  }
}

namespace {

std::vector<std::string> ReadTexts(const StateReader& reader, const char* name) {
  std::vector<std::string> texts;
  const Json json = ParseJson(reader.Text(name), name);
  for (const Json& text : json.Items()) texts.push_back(text.AsString());
  return texts;
}

}  // namespace

ModelCard ModelCard::Load(const StateReader& reader) {
  const std::vector<int64_t> dims = reader.Ints("data.shape");
  if (dims.size() != 3) throw Error("data.shape has {} numbers, not 3", dims.size());
  const SampleShape shape{int(dims[0]), int(dims[1]), int(dims[2])};
  std::vector<std::string> classes = ReadTexts(reader, "data.classes");
  const int64_t channels[] = {shape.channels};
  std::vector<float> scale(shape.channels), shift(shape.channels);
  reader.Tensor("data.scale", channels, scale);
  reader.Tensor("data.shift", channels, shift);
  Normalizer normalizer(std::move(scale), std::move(shift));
  if (reader.Has("data.target_mean")) {
    normalizer.SetTarget({reader.Real("data.target_mean"), reader.Real("data.target_deviation")});
  }
  std::vector<int64_t> samples;
  if (reader.Has("data.samples")) samples = reader.Ints("data.samples");
  ColumnCodes codes;
  if (reader.Has("data.codes")) {
    codes = ReadCodes(ParseJson(reader.Text("data.codes"), "data.codes"));
    if (InputsOf(codes) != shape.size()) {
      throw Error("data.codes makes {} values, not {}", InputsOf(codes), shape.size());
    }
  }
  const int64_t values = codes.empty() ? shape.size() : int64_t(codes.size());
  ColumnNames columns;
  if (reader.Has("data.columns")) {
    columns = {ReadTexts(reader, "data.columns"), reader.Text("data.label_column"),
               ReadTexts(reader, "data.id_columns")};
    if (int64_t(columns.values.size()) != values) {
      throw Error("data.columns has {} names for {} columns", columns.values.size(), values);
    }
  }
  return {shape,
          std::move(classes),
          std::move(normalizer),
          std::move(samples),
          std::move(columns),
          std::move(codes),
          reader.Has("model.layers") ? reader.Text("model.layers") : ""};
}

}  // namespace trireme
