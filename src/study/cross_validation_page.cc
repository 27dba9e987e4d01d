#include <fmt/format.h>

#include "base/text.h"
#include "record/progress_text.h"
#include "report/page/run_sections.h"
#include "study/cross_validation.h"
#include "study/statistics.h"

namespace trireme {
namespace {

std::string Shown(const FoldNumber& number, double value) {
  return number.share ? fmt::format("{:.2f} %", 100 * value) : fmt::format("{:.4f}", value);
}

// A row for each fold, then their mean and deviation; columns about which all say something.
std::vector<std::vector<std::string>> RowsOf(const FoldsResult& result) {
  std::vector<std::vector<std::string>> rows{{"fold"}};
  for (size_t fold = 0; fold < result.summaries.size(); ++fold) {
    rows.push_back({std::to_string(fold + 1)});
  }
  rows.push_back({"mean"});
  rows.push_back({"deviation"});
  for (const FoldNumber& number : FoldNumbers()) {
    const auto values = result.Numbers(number.name);
    if (!values || (result.classes.size() <= 5 && std::string_view(number.name) == "test_top5")) {
      continue;
    }
    rows[0].emplace_back(number.title);
    for (size_t fold = 0; fold < values->size(); ++fold) {
      rows[fold + 1].push_back(Shown(number, (*values)[fold]));
    }
    const Moments moments = MomentsOf(*values);
    rows[rows.size() - 2].push_back(Shown(number, moments.mean));
    rows[rows.size() - 1].push_back(Shown(number, moments.deviation));
  }
  return rows;
}

}  // namespace

std::string FoldsText(const FoldsResult& result) {
  std::string text;
  for (const auto& row : RowsOf(result)) {
    text += fmt::format("{:>9}", row[0]);
    for (size_t i = 1; i < row.size(); ++i) text += fmt::format("  {:>13}", row[i]);
    text += "\n";
  }
  return text;
}

Page FoldsPage(const FoldsPlan& plan, const FoldsResult& result, const std::string& command) {
  Page page{.title = fmt::format("{}-fold cross-validation", plan.folds())};
  page.subtitle = fmt::format("model {}, data {}, {} samples", plan.recipe.model.name,
                              plan.recipe.data.source, FormatCount(result.pooled.samples));
  const auto rows = RowsOf(result);
  PageTable table{.title = "Each fold", .header = rows[0]};
  table.rows.assign(rows.begin() + 1, rows.end());
  table.caption = "Each model is tested on its fold and trained on the others.";
  if (!result.pooled.errors) table.caption += " F1 and AUC are means over classes.";
  page.sections.push_back({"Result", {std::move(table)}});

  std::vector<RunData> folds;
  for (int fold = 0; fold < plan.folds(); ++fold) folds.push_back(ReadRun(plan.Folder(fold)));
  std::vector<NamedRun> named;
  for (const RunData& fold : folds) named.push_back({fold.name, &fold});
  page.sections.push_back({"Learning", LearningCharts(named)});

  Commands how{{command, ShellLine(std::vector<std::string>{"trireme", "report", plan.out})}};
  if (result.pooled.errors) {
    page.sections.push_back(
        {"All folds together",
         {Paragraph{fmt::format("Each of {} samples is tested once, by the model not trained on "
                                "it: {}.",
                                FormatCount(result.pooled.samples),
                                NumbersText(RecordOf(*result.pooled.errors)))}}});
    page.sections.push_back({"How", {std::move(how)}});
    return page;
  }
  RunData together;
  together.summary = FoldsJson(plan, result);
  const NamedRun all[] = {{"all folds", &together}};
  Section classes = ClassSection(all);
  classes.title = "Classes, all folds together";
  classes.blocks.insert(
      classes.blocks.begin(),
      Paragraph{fmt::format(
          "Each sample is tested once, by the model not trained on it: {:.2f} % of {} are right. "
          "Curves rank the scores of {} models as if they came from one.",
          100 * result.pooled.accuracy, FormatCount(result.pooled.samples), plan.folds())});
  page.sections.push_back(std::move(classes));
  page.sections.push_back({"How", {std::move(how)}});
  return page;
}

}  // namespace trireme
