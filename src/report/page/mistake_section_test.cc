#include <gtest/gtest.h>

#include "report/page/page_html.h"
#include "report/page/run_page.h"
#include "report/page/run_sections.h"

namespace trireme {
namespace {

RunData RunWith(const std::string& mistakes) {
  RunData run;
  run.name = run.path = "a";
  run.summary = ParseJson("{}", "summary.json");
  run.mistakes = ParseJson(mistakes, "mistakes.json");
  return run;
}

Section SectionOf(const RunData& run) {
  const NamedRun runs[] = {{"a", &run}};
  return MistakeSection(runs);
}

TEST(MistakeSection, PicturesSayWhatTheyAreAndWhatWasSaid) {
  const RunData run = RunWith(R"({"mistakes":[{"sample":"cat/1.jpg","label":"cat",
      "prediction":"<dog>","probability":0.98765,"picture":"iVBORw0K"}]})");
  const Section section = SectionOf(run);
  ASSERT_EQ(section.blocks.size(), 2u);
  const auto& picture = std::get<Pictures>(section.blocks[1]).pictures.at(0);
  EXPECT_EQ(picture.title, "cat, taken for <dog>");
  EXPECT_EQ(picture.note, "98.77 % (cat/1.jpg)");
  const std::string html = PageHtml(RunsPage({&run, 1}));
  EXPECT_NE(html.find("src=\"data:image/png;base64,iVBORw0K\""), html.npos);
  EXPECT_EQ(html.find("<dog>"), html.npos);
}

TEST(MistakeSection, RowsAreATable) {
  const RunData run = RunWith(R"({"columns":["x","colour"],"mistakes":[
      {"sample":"7","label":"a","prediction":"b","probability":0.5,"fields":["1.5","red"]},
      {"sample":"9","label":"b","prediction":"a","probability":0.4,"fields":["2"]}]})");
  const Section section = SectionOf(run);
  const auto& table = std::get<PageTable>(section.blocks.at(1));
  EXPECT_EQ(table.header, (std::vector<std::string>{"sample", "true", "predicted", "probability",
                                                    "x", "colour"}));
  EXPECT_EQ(table.rows[0], (std::vector<std::string>{"7", "a", "b", "50.00 %", "1.5", "red"}));
  EXPECT_EQ(table.rows[1].back(), "");
  const Section numbers =
      SectionOf(RunWith(R"({"columns":["x"],"mistakes":[{"sample":"3","label":10.5,
      "prediction":-2,"fields":["4"]}]})"));
  EXPECT_EQ(numbers.title, "Largest errors");
  EXPECT_EQ(std::get<PageTable>(numbers.blocks.at(1)).rows[0],
            (std::vector<std::string>{"3", "10.5", "-2", "4"}));
}

TEST(MistakeSection, WhatIsDamagedOrMissingIsLeftOut) {
  for (const char* text :
       {"{}", R"({"mistakes":7})", R"({"mistakes":[]})", R"({"mistakes":[3]})",
        R"({"mistakes":[{"sample":"1"}]})", R"({"mistakes":[{"sample":"1","label":[],
        "prediction":"a"}]})",
        R"({"mistakes":[{"sample":"1","label":"a","prediction":"b","picture":"\"onload="}]})"}) {
    EXPECT_TRUE(SectionOf(RunWith(text)).blocks.empty()) << text;
  }
  RunData unfinished = RunWith(R"({"mistakes":[{"sample":"1","label":"a","prediction":"b"}]})");
  EXPECT_FALSE(SectionOf(unfinished).blocks.empty());
  unfinished.summary.reset();
  EXPECT_TRUE(SectionOf(unfinished).blocks.empty());
}

}  // namespace
}  // namespace trireme
