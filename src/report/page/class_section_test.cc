#include <gtest/gtest.h>

#include "record/metrics.h"
#include "report/page/page_html.h"
#include "report/page/run_page.h"
#include "report/page/run_sections.h"

namespace trireme {
namespace {

// A run of so many classes; the scores of later ones tell more.
RunData RunOf(size_t classes) {
  Summary summary;
  summary.confusion.assign(classes, std::vector<int64_t>(classes, 1));
  for (size_t c = 0; c < classes; ++c) {
    summary.classes.push_back("class " + std::to_string(c));
    summary.confusion[c][c] = int64_t(10 + c);
    RocBuilder builder;
    builder.Add(int64_t(1 + c), 0);
    builder.Add(5, 9);
    builder.Add(0, 7);
    summary.roc.classes.push_back(builder.Finish(200, false));
  }
  RunData run;
  run.name = run.path = "a";
  run.summary = ToJson(summary);
  return run;
}

template <class T>
std::vector<T> BlocksOf(const Section& section) {
  std::vector<T> blocks;
  for (const Block& block : section.blocks) {
    if (const T* one = std::get_if<T>(&block)) blocks.push_back(*one);
  }
  return blocks;
}

TEST(ClassSection, OneRunHasItsCurvesAndATableOfAllNumbers) {
  const RunData run = RunOf(3);
  const NamedRun runs[] = {{"a", &run}};
  const Section section = ClassSection(runs);
  const auto charts = BlocksOf<LineChart>(section);
  ASSERT_EQ(charts.size(), 1u);
  EXPECT_EQ(charts[0].title, "ROC curves");
  ASSERT_EQ(charts[0].curves.size(), 4u);
  EXPECT_EQ(charts[0].curves[0].name.find("class 0 (AUC 0."), 0u);
  EXPECT_EQ(charts[0].curves[0].y.back(), 100);
  EXPECT_EQ(charts[0].curves[3].name, "by chance");
  const auto tables = BlocksOf<PageTable>(section);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].header, (std::vector<std::string>{"class", "test samples", "recall",
                                                        "precision", "F1", "AUC"}));
  ASSERT_EQ(tables[0].rows.size(), 4u);
  EXPECT_EQ(tables[0].rows[0][2], "83.33 %");
  EXPECT_EQ(tables[0].rows[3][0], "mean over classes");
  for (const auto& row : tables[0].rows) EXPECT_EQ(row.size(), 6u);
}

TEST(ClassSection, OfManyClassesTheHardestAreDrawn) {
  const RunData run = RunOf(12);
  const NamedRun runs[] = {{"a", &run}};
  const Section section = ClassSection(runs);
  const auto charts = BlocksOf<LineChart>(section);
  ASSERT_EQ(charts.at(0).curves.size(), 8u);
  for (size_t c = 0; c < 7; ++c) {
    EXPECT_EQ(charts[0].curves[c].name.find("class " + std::to_string(c) + " "), 0u);
  }
  EXPECT_NE(charts[0].caption.find("the 7 of 12 classes"), std::string::npos);
  EXPECT_EQ(BlocksOf<PageTable>(section).at(0).rows.size(), 13u);
}

TEST(ClassSection, SeveralRunsStandBesideEachOther) {
  const RunData a = RunOf(3), b = RunOf(3), other = RunOf(4);
  const NamedRun runs[] = {{"a", &a}, {"b", &b}, {"other", &other}};
  const Section section = ClassSection(runs);
  EXPECT_EQ(BlocksOf<LineChart>(section).size(), 3u);
  const auto tables = BlocksOf<PageTable>(section);
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[1].title, "AUC of each class");
  EXPECT_EQ(tables[1].header, (std::vector<std::string>{"class", "test samples", "a", "b"}));
}

TEST(ClassSection, WhatIsDamagedOrOldIsLeftOut) {
  for (const char* text :
       {"{}", R"({"confusion":7,"roc":[]})", R"({"confusion":[[1,2],[3]]})",
        R"({"confusion":[[1,"x"],[3,4]]})", R"({"confusion":[[1,-2],[3,4]],"per_class_auc":{}})",
        R"({"confusion":[[1,2],[3,4]]})", R"({"confusion":[[1,2],[3,4]],"per_class_auc":[1]})",
        R"({"confusion":[[1,2],[3,4]],"per_class_auc":[1,"x"],"roc":{"curves":[3,{}]}})",
        R"({"confusion":[[1,2],[3,4]],"per_class_auc":[1,1],"roc":{"curves":[
          {"false_positive_rate":[0,1],"true_positive_rate":[0]},
          {"false_positive_rate":[1,0],"true_positive_rate":[0,1]}]}})"}) {
    RunData run;
    run.name = run.path = "a";
    run.summary = ParseJson(text, "summary.json");
    const NamedRun runs[] = {{"a", &run}};
    EXPECT_TRUE(BlocksOf<LineChart>(ClassSection(runs)).empty()) << text;
    EXPECT_FALSE(PageHtml(RunsPage(std::span(&run, 1))).empty());
  }
}

}  // namespace
}  // namespace trireme
