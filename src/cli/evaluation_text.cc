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

// A share as per cent; nothing as a dash.
std::string Percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.2f} %", 100 * *share) : "-";
}

std::string AreaText(const std::optional<double>& area) {
  return area ? fmt::format("{:.5f}", *area) : "-";
}

std::string ClassRow(const std::string& name, size_t width, int64_t samples,
                     const std::optional<double>& recall, const std::optional<double>& precision,
                     const std::optional<double>& f1, const std::optional<double>& auc) {
  return fmt::format("{:>{}}  {:>7}  {:>8}  {:>9}  {:>8}  {:>7}\n", name, width, samples,
                     Percent(recall), Percent(precision), Percent(f1), AreaText(auc));
}

std::string ClassesText(const Evaluation& evaluation, const RocCurves& roc,
                        const std::vector<std::string>& classes, size_t width) {
  const std::vector<ClassScore> scores = ScoresOf(evaluation.confusion);
  const MacroScore macro = MacroOf(scores);
  std::string text = fmt::format("\n{:>{}}  samples    recall  precision        F1      AUC\n",
                                 "class", width + 5);
  for (size_t i = 0; i < classes.size(); ++i) {
    const ClassScore& score = scores[i];
    text += ClassRow(fmt::format("{:>4} {:>{}}", i, classes[i], width), width + 5, score.samples,
                     score.recall, score.precision, score.f1, roc.classes[i].auc);
  }
  text += ClassRow("mean", width + 5, evaluation.samples, macro.recall, macro.precision, macro.f1,
                   roc.MacroAuc());
  if (roc.bins) {
    text += fmt::format("AUC from a histogram of {} bins: each is off by at most {:.2g}\n",
                        roc.bins, roc.AucError());
  }
  return text;
}

}  // namespace

std::string EvaluationText(const Evaluation& evaluation, const RocCurves& roc,
                           const std::vector<std::string>& classes, const std::string& which) {
  if (evaluation.errors) {
    const NumberRecord numbers = RecordOf(*evaluation.errors);
    return fmt::format(
        "samples    {} ({})\nloss       {}\nRMSE       {:.6g}\nMAE        {:.6g}\nR2         {}\n",
        FormatCount(evaluation.samples), which, FormatLoss(evaluation.loss), numbers.rmse,
        numbers.mae, numbers.r2 ? fmt::format("{:.5f}", *numbers.r2) : "-");
  }
  std::string text = fmt::format("samples    {} ({})\nloss       {}\naccuracy   {:.2f} %\n",
                                 FormatCount(evaluation.samples), which,
                                 FormatLoss(evaluation.loss), 100 * evaluation.accuracy);
  if (classes.size() > 5) text += fmt::format("top 5      {:.2f} %\n", 100 * evaluation.top5);
  size_t width = 5;
  for (const std::string& name : classes) width = std::max(width, name.size());
  text += ClassesText(evaluation, roc, classes, width);
  if (classes.size() <= kMostColumns) text += ConfusionText(evaluation, width + 5);
  return text;
}

std::string EvaluationJson(const Evaluation& evaluation, const RocCurves& roc,
                           const std::vector<std::string>& classes, const std::string& which) {
  Json json = Json::Object();
  json.Add("test_accuracy", evaluation.errors ? Json() : Json(evaluation.accuracy))
      .Add("test_top5", evaluation.errors ? Json() : Json(evaluation.top5))
      .Add("test_loss", evaluation.loss)
      .Add("samples", evaluation.samples)
      .Add("of", which)
      .Add("classes", classes);
  if (evaluation.errors) {
    AddNumbers(json, "test", RecordOf(*evaluation.errors));
  } else {
    AddClasses(json, evaluation.confusion, roc);
  }
  return json.Text() + "\n";
}

}  // namespace trireme
