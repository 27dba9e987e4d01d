#include "report/page/page_json.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "report/page/page_html.h"
#include "report/page/testing.h"

namespace trireme {
namespace {

// Without what JSON has not: it must be UTF-8, and of what is not finite only that it is not.
Page CleanPage() {
  Page page = NastyPage();
  const std::string text = "<b>\"x\"\n\\";
  page.title = page.subtitle = page.sections[0].title = text;
  auto& blocks = page.sections[0].blocks;
  auto& line = std::get<LineChart>(blocks[0]);
  line.title = line.caption = line.x.title = line.x.unit = line.y.title = line.y.unit = text;
  line.curves[0].name = text;
  auto& bars = std::get<BarChart>(blocks[1]);
  bars.title = bars.caption = bars.bars_title = bars.y.title = bars.y.unit = bars.bars[0] =
      bars.parts[0] = text;
  auto& heat = std::get<HeatChart>(blocks[2]);
  heat.title = heat.caption = heat.row_title = heat.column_title = heat.rows[0] = heat.columns[0] =
      text;
  auto& table = std::get<PageTable>(blocks[3]);
  table.title = table.caption = table.header[0] = table.rows[0][0] = text;
  std::get<Paragraph>(blocks[4]).text = std::get<Commands>(blocks[5]).lines[0] = text;
  return page;
}

TEST(PageJson, ComesBackAsItWas) {
  const Page page = CleanPage();
  const std::string text = PageJson(page);
  const Page again = ParsePageJson(text, "page.json");
  EXPECT_EQ(PageJson(again), text);
  EXPECT_EQ(PageHtml(again), PageHtml(page));
}

TEST(PageJson, SaysWhatIsWrong) {
  const auto problem = [](const std::string& text) -> std::string {
    try {
      ParsePageJson(text, "p.json");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(problem("{\"page\":1,\"title\":\"\",\"subtitle\":\"\",\"sections\":[]}"), "");
  EXPECT_NE(
      problem("{\"page\":2,\"title\":\"\",\"subtitle\":\"\",\"sections\":[]}").find("version 2"),
      std::string::npos);
  EXPECT_NE(problem("{}").find("p.json: the key \"page\" is missing"), std::string::npos);
  EXPECT_NE(problem("[]").find("p.json"), std::string::npos);
  EXPECT_NE(
      problem(
          "{\"page\":1,\"title\":\"\",\"subtitle\":\"\",\"sections\":[{\"title\":\"\",\"blocks\":[{"
          "\"block\":\"cake\"}]}]}")
          .find("\"cake\""),
      std::string::npos);
}

TEST(PageJson, DamagedFilesAreAnErrorOrAPageNeverACrash) {
  const std::string whole = PageJson(CleanPage());
  std::mt19937 random(3);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = whole;
    const int changes = 1 + int(random() % 4);
    for (int i = 0; i < changes; ++i) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = char(random());
          break;
        case 1:
          text.resize(at + 1);
          break;
        case 2:
          text.erase(at, random() % 20);
          if (text.empty()) text = "x";
          break;
        default:
          text.insert(at, whole.substr(random() % whole.size(), random() % 30));
      }
    }
    try {
      PageHtml(ParsePageJson(text, "p"));
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace trireme
