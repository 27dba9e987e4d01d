#include "trainer/mistakes_json.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/error.h"
#include "data/fields.h"
#include "data/thumbnail.h"

namespace trireme {
namespace {

constexpr int kSide = 96;           // pixels
constexpr size_t kMostFields = 12;  // of a row

std::vector<std::string> First(std::vector<std::string> texts) {
  texts.resize(std::min(texts.size(), kMostFields));
  return texts;
}

Json MistakeJson(const DataSet& data, const Mistake& mistake) {
  const Source& test = *data.test;
  Json json = Json::Object();
  json.Add("sample", test.NameOf(mistake.sample));
  if (data.task == Task::kRegression) {
    json.Add("label", mistake.label).Add("prediction", mistake.said);
  } else {
    json.Add("label", data.classes[size_t(mistake.label)]);
    json.Add("prediction", data.classes[size_t(mistake.said)]);
    json.Add("probability", mistake.certainty);
  }
  if (ShowsPictures(test.shape())) {
    json.Add("picture", Base64(ThumbnailOf(test, mistake.sample, kSide)));
  } else {
    std::vector<float> values(size_t(test.shape().size()));
    test.Read(mistake.sample, values);
    json.Add("fields", First(FieldsOf(values, data.codes)));
  }
  return json;
}

}  // namespace

Json MistakesJson(const DataSet& data, std::span<const Mistake> mistakes) {
  Json json = Json::Object(), list = Json::Array();
  for (const Mistake& mistake : mistakes) {
    try {
      list.Append(MistakeJson(data, mistake));
    } catch (const Error&) {  // a file that went meanwhile: the run has ended well
    }
  }
  if (!ShowsPictures(data.shape)) {
    json.Add("columns", First(FieldNames(data.columns, data.codes, size_t(data.shape.size()))));
  }
  return json.Add("mistakes", std::move(list));
}

}  // namespace trireme
