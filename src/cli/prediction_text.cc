#include "cli/prediction_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "data/csv_field.h"
#include "record/json.h"

namespace trireme {
namespace {

std::vector<int> Best(std::span<const float> shares, size_t count) {
  std::vector<int> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return shares[a] > shares[b]; });
  order.resize(std::min(count, order.size()));
  return order;
}

std::vector<double> Doubles(std::span<const float> values) {
  return {values.begin(), values.end()};
}

}  // namespace

PredictionText::PredictionText(const Args& args, const ModelCard& card, Output& out)
    : classes_(card.classes),
      target_(card.normalizer.target()),
      out_(out),
      logits_(args.Has("--logits")),
      json_(args.Has("--json")),
      csv_(args.Has("--csv")),
      cut_(args.Has("--top")) {
  const int top = args.Number<int>("--top", 3);
  if (top < 1) throw UsageError("--top must be at least 1, got {}", top);
  if (cut_ && target_) throw UsageError("--top counts classes, but this model predicts a number");
  if (csv_ && (json_ || logits_)) {
    throw UsageError("--csv prints a table, --json and --logits print objects; choose one");
  }
  if (cut_ && logits_ && !json_) {
    throw UsageError(
        "--logits prints the outputs of all classes; add --json for the --top classes");
  }
  top_ = std::min(size_t(top), classes_.size());
  if (csv_) PrintHead();
}

void PredictionText::PrintHead() {
  std::string head = target_ ? "file,record,prediction" : "file,record,class";
  if (cut_) {
    head += ",probability";
    for (size_t i = 2; i <= top_; ++i) head += fmt::format(",class {0},probability {0}", i);
  } else {
    for (const std::string& name : classes_) head += "," + CsvField(name);
  }
  out_.Write(head + "\n");
}

void PredictionText::Print(const std::string& file, int64_t index, const Prediction& prediction) {
  if (target_) return PrintNumber(file, index, prediction);
  if (csv_) return PrintRow(file, index, prediction);
  if (json_ || logits_) return PrintObject(file, index, prediction);
  PrintLine(file, index, prediction);
}

void PredictionText::PrintLine(const std::string& file, int64_t index,
                               const Prediction& prediction) {
  std::string line = fmt::format("{} {}", file, index);
  for (const int i : Best(prediction.probabilities, top_)) {
    line += fmt::format("  {} {:.2f} %", classes_[i], 100 * prediction.probabilities[i]);
  }
  out_.Write(line + "\n");
}

void PredictionText::PrintRow(const std::string& file, int64_t index,
                              const Prediction& prediction) {
  std::string line = fmt::format("{},{}", CsvField(file), index);
  if (cut_) {
    for (const int i : Best(prediction.probabilities, top_)) {
      line += fmt::format(",{},{:.6g}", CsvField(classes_[i]), prediction.probabilities[i]);
    }
  } else {
    line += "," + CsvField(classes_[size_t(Best(prediction.probabilities, 1)[0])]);
    for (const float share : prediction.probabilities) line += fmt::format(",{:.6g}", share);
  }
  out_.Write(line + "\n");
}

void PredictionText::PrintObject(const std::string& file, int64_t index,
                                 const Prediction& prediction) {
  const std::vector<int> best = Best(prediction.probabilities, top_);
  Json json = Json::Object();
  json.Add("file", file).Add("record", index).Add("class", classes_[best[0]]);
  if (logits_) json.Add("logits", Doubles(prediction.logits));
  if (json_ && cut_) {
    Json top = Json::Array();
    for (const int i : best) {
      Json one = Json::Object();
      one.Add("class", classes_[i]).Add("probability", double(prediction.probabilities[i]));
      top.Append(std::move(one));
    }
    json.Add("top", std::move(top));
  } else if (json_) {
    json.Add("probabilities", Doubles(prediction.probabilities));
  }
  out_.Write(json.Text() + "\n");
}

void PredictionText::PrintNumber(const std::string& file, int64_t index,
                                 const Prediction& prediction) {
  const double number = target_->Original(prediction.logits[0]);
  if (csv_) return out_.Write(fmt::format("{},{},{:.7g}\n", CsvField(file), index, number));
  if (!logits_ && !json_) return out_.Write(fmt::format("{} {}  {:.7g}\n", file, index, number));
  Json json = Json::Object();
  json.Add("file", file).Add("record", index).Add("prediction", number);
  if (logits_) json.Add("logits", Doubles(prediction.logits));
  out_.Write(json.Text() + "\n");
}

}  // namespace trireme
