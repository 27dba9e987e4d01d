#include "trainer/model_card.h"

#include "base/error.h"
#include "record/json.h"

namespace trireme {

void ModelCard::Save(StateWriter& writer) const {
  const int64_t dims[] = {shape.height, shape.width, shape.channels};
  writer.Ints("data.shape", dims);
  writer.Text("data.classes", Json(classes).Text());
  writer.Ints("data.samples", samples);
  const int64_t channels[] = {normalizer.channels()};
  writer.Tensor("data.scale", channels, normalizer.scale());
  writer.Tensor("data.shift", channels, normalizer.shift());
}

ModelCard ModelCard::Load(const StateReader& reader) {
  const std::vector<int64_t> dims = reader.Ints("data.shape");
  if (dims.size() != 3) throw Error("data.shape has {} numbers, not 3", dims.size());
  const SampleShape shape{int(dims[0]), int(dims[1]), int(dims[2])};
  std::vector<std::string> classes;
  const Json names = ParseJson(reader.Text("data.classes"), "data.classes");
  for (const Json& name : names.Items()) classes.push_back(name.AsString());
  const int64_t channels[] = {shape.channels};
  std::vector<float> scale(shape.channels), shift(shape.channels);
  reader.Tensor("data.scale", channels, scale);
  reader.Tensor("data.shift", channels, shift);
  std::vector<int64_t> samples;
  if (reader.Has("data.samples")) samples = reader.Ints("data.samples");
  return {shape, std::move(classes), Normalizer(std::move(scale), std::move(shift)),
          std::move(samples)};
}

}  // namespace trireme
