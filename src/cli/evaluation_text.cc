#include "cli/evaluation_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "record/json.h"
#include "record/metrics.h"

namespace trireme {
namespace {

constexpr size_t kMostColumns = 20;  // a wider confusion matrix does not fit a screen

std::string ConfusionText(const Evaluation& evaluation, size_t name_width) {
  std::string text = fmt::format("\n{:>{}}   predictions\n", "", name_width);
  for (size_t label = 0; label < evaluation.confusion.size(); ++label) {
    text += fmt::format("{:>{}} |", label, name_width);
    for (const int64_t count : evaluation.confusion[label]) text += fmt::format(" {:>5}", count);
    text += "\n";
  }
  return text;
}

}  // namespace

std::string EvaluationText(const Evaluation& evaluation, const std::vector<std::string>& classes) {
  std::string text =
      fmt::format("samples    {}\nloss       {:.4f}\naccuracy   {:.2f} %\n",
                  FormatCount(evaluation.samples), evaluation.loss, 100 * evaluation.accuracy);
  if (classes.size() > 5) text += fmt::format("top 5      {:.2f} %\n", 100 * evaluation.top5);
  size_t width = 5;
  for (const std::string& name : classes) width = std::max(width, name.size());
  text += fmt::format("\n{:>{}}  accuracy  samples\n", "class", width + 5);
  const auto shares = PerClassAccuracy(evaluation.confusion);
  for (size_t i = 0; i < classes.size(); ++i) {
    int64_t samples = 0;
    for (const int64_t count : evaluation.confusion[i]) samples += count;
    text += fmt::format("{:>4} {:>{}}  {:>8}  {:>7}\n", i, classes[i], width,
                        shares[i] ? fmt::format("{:.2f} %", 100 * *shares[i]) : "-", samples);
  }
  if (classes.size() <= kMostColumns) text += ConfusionText(evaluation, width + 5);
  return text;
}

std::string EvaluationJson(const Evaluation& evaluation, const std::vector<std::string>& classes) {
  Json json = Json::Object();
  json.Add("test_accuracy", evaluation.accuracy)
      .Add("test_top5", evaluation.top5)
      .Add("test_loss", evaluation.loss)
      .Add("samples", evaluation.samples)
      .Add("classes", classes)
      .Add("confusion", evaluation.confusion);
  return json.Text() + "\n";
}

}  // namespace trireme
