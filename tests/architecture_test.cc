// Holds the arrows of the house: which folder of src/ may include which. src/README.md draws them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

namespace {

using Folders = std::set<std::string>;

// A folder may include itself and these.
const std::map<std::string, Folders> kStandsOn = {
    {"base", {}},
    {"flat", {"base"}},
    {"image", {"base"}},
    {"data", {"base", "image"}},
    {"record", {"base"}},
    {"graph", {"base", "flat"}},
    {"optimizer", {"base", "flat"}},
    {"transport", {"base", "flat"}},
    {"launch", {"base", "flat", "transport"}},
    {"engine", {"base", "flat", "graph"}},
    {"strategy", {"base", "flat", "optimizer", "transport"}},
    {"trainer",
     {"base", "flat", "image", "data", "record", "graph", "optimizer", "transport", "launch",
      "engine", "strategy"}},
    {"study",
     {"base", "flat", "image", "data", "record", "graph", "optimizer", "transport", "launch",
      "engine", "strategy", "trainer"}},
    {"cli",
     {"base", "flat", "image", "data", "record", "graph", "optimizer", "transport", "launch",
      "engine", "strategy", "trainer", "study"}},
};

TEST(Architecture, IncludesFollowTheArrows) {
  const std::filesystem::path src = std::filesystem::path(TRIREME_SOURCE_DIR) / "src";
  const std::regex include("^\\s*#include \"([a-z_]+)/[^\"]*\"");
  int lines = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(src)) {
    const auto extension = entry.path().extension();
    if (extension != ".h" && extension != ".cc") continue;
    const std::string folder = *std::filesystem::relative(entry.path(), src).begin();
    ASSERT_TRUE(kStandsOn.count(folder)) << "a new folder: " << entry.path();
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) continue;
      const std::string other = match[1];
      if (!kStandsOn.count(other)) continue;  // hwy/, gtest/: not ours
      ++lines;
      EXPECT_TRUE(other == folder || kStandsOn.at(folder).count(other))
          << entry.path() << " includes " << match[0];
    }
  }
  EXPECT_GT(lines, 100);
}

// An engine stands on graph/ alone: none may reach into another.
TEST(Architecture, EnginesDoNotIncludeEachOther) {
  const std::filesystem::path src = std::filesystem::path(TRIREME_SOURCE_DIR) / "src" / "engine";
  const std::regex include("^\\s*#include \"engine/([a-z_]+)/");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(src)) {
    if (!entry.is_regular_file() || entry.path().stem().string().ends_with("_test")) continue;
    const std::string engine = *std::filesystem::relative(entry.path(), src).begin();
    if (engine == "check") continue;       // compares an engine with the judge
    if (engine == "engines.cc") continue;  // the list
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (std::regex_search(line, match, include)) {
        EXPECT_EQ(match[1], engine) << entry.path();
      }
    }
  }
}

}  // namespace
