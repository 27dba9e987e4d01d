#include "cli/value_words.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "cli/commands.h"
#include "cli/libraries.h"
#include "cli/list.h"
#include "data/sources.h"
#include "graph/models/models.h"
#include "recipe/recipe.h"
#include "study/replay.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

Candidates Files(std::string_view) { return {.files = true}; }

Candidates Recipes(std::string_view) {
  Candidates found{.files = true};
  for (const BuiltInRecipe& recipe : BuiltInRecipes()) {
    const std::string_view line = recipe.text.substr(0, recipe.text.find('\n'));
    const size_t begin = std::min(line.find_first_not_of("# "), line.size());
    found.words.push_back({std::string(recipe.name), std::string(line.substr(begin))});
  }
  return found;
}

// Where runs lie by default, or in the folder that is typed.
Candidates Runs(std::string_view typed) {
  Candidates found{.files = true};
  const size_t slash = typed.rfind('/');
  const std::string folder(slash == typed.npos ? "runs" : typed.substr(0, slash + 1));
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (Exists((entry.path() / "config.toml").string())) {
      found.words.push_back({entry.path().string(), "run"});
    }
  }
  std::ranges::sort(found.words, {}, &Candidate::word);
  return found;
}

Candidates Models(std::string_view) {
  Candidates found;
  for (const ModelDef& model : AllModels()) found.words.push_back({model.name, model.summary});
  return found;
}

// The name of a source, then the files behind its colon.
Candidates Sources(std::string_view typed) {
  Candidates found;
  const size_t colon = typed.find(':');
  for (const SourceKind& kind : SourceKinds()) {
    const std::string_view syntax = kind.syntax;
    const std::string name = kind.name;
    const bool bare = syntax.size() == name.size() || syntax[name.size()] == '[';
    if (bare) found.words.push_back({name, kind.help});
    if (syntax.find(':') == syntax.npos) continue;
    found.words.push_back({name + ":", kind.help});
  }
  if (colon == typed.npos) return found;
  const std::string path(typed.substr(colon + 1));
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, none)) {
    std::string word = std::string(typed.substr(0, colon + 1)) + folder;
    word += entry.path().filename().string();
    if (entry.is_directory(none)) word += '/';
    found.words.push_back({std::move(word), ""});
  }
  std::ranges::sort(found.words, {}, &Candidate::word);
  return found;
}

Candidates Topics(std::string_view) {
  Candidates found;
  for (const std::string& topic : ListTopics()) found.words.push_back({topic, ""});
  return found;
}

Candidates Experiments(std::string_view) {
  Candidates found;
  for (const ReplayKind& replay : ReplayKinds())
    found.words.push_back({std::string(replay.name), ""});
  return found;
}

Candidates LibraryNames(std::string_view) {
  Candidates found{.words = {{"trireme", "Apache-2.0"}}};
  for (const Library& library : Libraries()) {
    found.words.push_back({std::string(library.name), std::string(library.license)});
  }
  return found;
}

Candidates Pages(std::string_view) {
  Candidates found{.words = {{"recipe", "the keys of a recipe"}}};
  for (const Command* command : AllCommands()) {
    found.words.push_back({std::string(command->name.substr(0, command->name.find(' '))), ""});
  }
  return found;
}

struct Values {
  std::string_view name;
  Candidates (*find)(std::string_view typed);
};

// As the commands' tables name them.
constexpr Values kNames[] = {
    {"RECIPE", Recipes},       {"RUN", Runs},       {"DIR", Runs},
    {"FILE", Files},           {"PATH", Files},     {"MODEL", Models},
    {"TOPIC", Topics},         {"SOURCE", Sources}, {"NAME", Experiments},
    {"LIBRARY", LibraryNames}, {"PAGE", Pages},
};
// Keys whose check lists no words.
constexpr Values kKeys[] = {
    {"model.name", Models},
    {"data.source", Sources},
    {"trainer.init", Runs},
};

}  // namespace

Candidates ValuesOf(std::string_view name, std::string_view typed) {
  for (const Values& values : kNames) {
    if (values.name == name) return values.find(typed);
  }
  Candidates found;
  if (name.find('|') == name.npos) return found;
  for (const std::string& word : Split(name, '|')) found.words.push_back({word, ""});
  return found;
}

Candidates ValuesOfKey(std::string_view key, std::string_view typed) {
  for (const Values& values : kKeys) {
    if (values.name == key) return values.find(typed);
  }
  Recipe recipe;
  Sections sections;
  Bind(sections, recipe);
  const std::vector<std::string> paths = sections.Paths();
  Candidates found;
  if (std::ranges::find(paths, key) == paths.end()) return found;
  const Option& option = sections.At(key);
  for (const std::string& word : option.check().words) {
    if (word.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == word.npos) {  // not NAME:K
      found.words.push_back({word, ""});
    }
  }
  const bool flag = option.default_toml() == "true" || option.default_toml() == "false";
  if (flag) found.words = {{"true", ""}, {"false", ""}};
  found.files = found.words.empty() && option.default_toml().starts_with('"');
  return found;
}

Candidates Keys() {
  Recipe recipe;
  Sections sections;
  Bind(sections, recipe);
  Candidates found;
  for (const std::string& path : sections.Paths()) {
    found.words.push_back({path + "=", sections.At(path).help()});
  }
  return found;
}

}  // namespace trireme
