// Holds the arrows of the house: which folder of src/ may include which. src/README.md draws them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "engine/engines.h"
#include "launch/transports.h"
#include "strategy/choice.h"
#include "strategy/presets.h"

namespace {

namespace fs = std::filesystem;
using Folders = std::set<std::string>;

// A folder may include itself and these.
const std::map<std::string, Folders> kStandsOn = {
    {"base", {}},
    {"flat", {"base"}},
    {"image", {"base"}},
    {"data", {"base", "image"}},
    {"record", {"base"}},
    {"report", {"base", "record"}},
    {"graph", {"base", "flat"}},
    {"optimizer", {"base", "flat"}},
    {"transport", {"base", "flat"}},
    {"launch", {"base", "flat", "transport"}},
    {"engine", {"base", "flat", "graph"}},
    {"strategy", {"base", "flat", "optimizer", "transport"}},
    {"recipe",
     {"base", "flat", "image", "data", "record", "graph", "optimizer", "transport", "launch",
      "engine", "strategy"}},
    {"model",
     {"base", "flat", "image", "data", "record", "graph", "optimizer", "transport", "launch",
      "engine", "strategy", "recipe"}},
    {"health",
     {"base", "flat", "image", "data", "record", "graph", "optimizer", "transport", "launch",
      "engine", "strategy", "recipe", "model"}},
    {"trainer",
     {"base", "flat", "image", "data", "record", "graph", "optimizer", "transport", "launch",
      "engine", "strategy", "recipe", "model", "health"}},
    {"library",
     {"base", "flat", "image", "data", "record", "graph", "optimizer", "transport", "launch",
      "engine", "strategy", "recipe", "model", "health", "trainer"}},
    {"study",
     {"base", "flat", "image", "data", "record", "report", "graph", "optimizer", "transport",
      "launch", "engine", "strategy", "recipe", "model", "health", "trainer"}},
    {"cli",
     {"base", "flat", "image", "data", "record", "report", "graph", "optimizer", "transport",
      "launch", "engine", "strategy", "recipe", "model", "health", "trainer", "study"}},
};

bool IsCode(const fs::path& path) {
  static const std::set<std::string> extensions = {".h", ".cc", ".cu", ".cuh"};
  return extensions.contains(path.extension().string());
}

TEST(Architecture, IncludesFollowTheArrows) {
  const fs::path src = fs::path(TRIREME_SOURCE_DIR) / "src";
  const std::regex include("^\\s*#include \"([a-z_]+)/[^\"]*\"");
  int lines = 0;
  for (const auto& entry : fs::recursive_directory_iterator(src)) {
    if (!IsCode(entry.path())) continue;
    const std::string folder = *fs::relative(entry.path(), src).begin();
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

// Folders of src at every depth and what files of theirs include of others, tests left out. Each
// with the lines that do it.
using Pair = std::pair<std::string, std::string>;
std::map<Pair, std::vector<std::string>> FoldersThatInclude() {
  const fs::path src = fs::path(TRIREME_SOURCE_DIR) / "src";
  const std::regex include("^\\s*#include \"([a-z0-9_/]+)/[^/\"]+\"");
  std::map<Pair, std::vector<std::string>> found;
  for (const auto& entry : fs::recursive_directory_iterator(src)) {
    const fs::path path = entry.path();
    if (!IsCode(path)) continue;
    if (path.stem().string().ends_with("_test")) continue;
    const std::string folder = fs::relative(path.parent_path(), src).generic_string();
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, include) || match[1] == folder) continue;
      if (!fs::is_directory(src / match[1].str())) continue;  // hwy/, gtest/: not ours
      found[{folder, match[1]}].push_back(path.filename().string() + ": " + line);
    }
  }
  return found;
}

TEST(Architecture, NoTwoFoldersIncludeEachOther) {
  const auto includes = FoldersThatInclude();
  EXPECT_GT(includes.size(), 50u);
  for (const auto& [pair, lines] : includes) {
    const auto back = includes.find({pair.second, pair.first});
    if (pair.first > pair.second || back == includes.end()) continue;
    ADD_FAILURE() << pair.first << " and " << pair.second << ":\n  " << lines[0] << "\n  "
                  << back->second[0];
  }
}

// Other programs include it, and have nothing else of ours.
TEST(Architecture, ThePublicHeaderIncludesTheStandardLibraryOnly) {
  std::ifstream file(fs::path(TRIREME_SOURCE_DIR) / "src/library/trireme.h");
  const std::regex standard("#include <[a-z_]+>");  // others' headers have a folder or an ending
  int lines = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.find("#include") == line.npos) continue;
    EXPECT_TRUE(std::regex_match(line, standard)) << line;
    ++lines;
  }
  EXPECT_GT(lines, 5);
}

// Everybody else asks the row of an engine.
TEST(Architecture, OnlyTheListOfEnginesIncludesThem) {
  for (const auto& [pair, lines] : FoldersThatInclude()) {
    const auto& [folder, other] = pair;
    const auto engine_of = [](const std::string& path) {
      const fs::path parts(path);
      auto part = parts.begin();
      return *part == "engine" && ++part != parts.end() ? part->string() : std::string();
    };
    const std::string engine = engine_of(other);
    if (engine.empty() || engine == "check" || engine == engine_of(folder)) continue;
    if (folder == "engine/check") continue;  // compares with ref
    for (const std::string& line : lines) {
      EXPECT_TRUE(folder == "engine" && line.starts_with("engines.cc:")) << folder << "/" << line;
    }
  }
}

// ---- kinds

// The names of all rows that a recipe chooses from, and of the words of a strategy.
std::set<std::string> NamesOfKinds() {
  std::set<std::string> names;
  for (const auto& kind : trireme::EngineKinds()) names.emplace(kind.name);
  for (const auto& kind : trireme::TransportKinds()) names.emplace(kind.name);
  for (const auto& kind : trireme::StrategyPresets()) names.emplace(kind.name);
  for (const auto& kind : trireme::InnerKinds()) names.emplace(kind.name);
  for (const auto& kind : trireme::MergeKinds()) names.emplace(kind.name);
  for (const std::string& word : trireme::CentreWords()) names.insert(word);
  for (const std::string& word : trireme::PaceWords()) names.insert(word);
  names.erase("auto");  // no kind: what is left open
  return names;
}

// Where a kind is a row, and so may be told by its name.
bool IsListOfKinds(const fs::path& path) {
  static const std::set<std::string> lists = {"engines.cc", "transports.cc",  "presets.cc",
                                              "kinds.cc",   "merge_kinds.cc", "choice.cc"};
  return lists.contains(path.filename().string());
}

// model.norm and data.normalize have a "none" of their own; nothing there knows strategies.
bool MeansSomethingElse(const std::string& name, const std::string& folder) {
  return name == "none" && (folder == "data" || folder == "graph");
}

// A comparison with a literal, either way round, or a helper that hides one: Is("shm").
TEST(Architecture, NobodyAsksForTheNameOfAKind) {
  const std::set<std::string> names = NamesOfKinds();
  EXPECT_GT(names.size(), 20u);
  const fs::path src = fs::path(TRIREME_SOURCE_DIR) / "src";
  const std::regex compare(
      "[=!]=\\s*\"([a-z-]+)\"|\"([a-z-]+)\"(?:sv?)?\\s*[=!]=|\\bIs[A-Z]?\\w*\\(\"([a-z-]+)\"");
  int in_lists = 0;
  for (const auto& entry : fs::recursive_directory_iterator(src)) {
    const fs::path path = entry.path();
    if (!IsCode(path)) continue;
    if (path.stem().string().ends_with("_test")) continue;
    const std::string folder = *fs::relative(path, src).begin();
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      for (std::sregex_iterator at(line.begin(), line.end(), compare), end; at != end; ++at) {
        const std::string name = (*at)[1].str() + (*at)[2].str() + (*at)[3].str();
        if (!names.contains(name) || MeansSomethingElse(name, folder)) continue;
        EXPECT_TRUE(IsListOfKinds(path)) << path << " asks for a name, not for the row: " << line;
        ++in_lists;
      }
    }
  }
  EXPECT_LE(in_lists, 4);
}

}  // namespace
