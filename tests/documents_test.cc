// The documents tell the truth: their commands run, their paths exist, printed pages are current.
#include <algorithm>
#include <filesystem>
#include <regex>

#include "base/text.h"
#include "support/whole_test.h"

namespace trireme::whole {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = TRIREME_SOURCE_DIR;

std::vector<fs::path> Documents() {
  std::vector<fs::path> documents;
  for (const char* name : {"README.md", "CONTRIBUTING.md", "src/README.md"}) {
    if (fs::exists(kSource / name)) documents.push_back(kSource / name);
  }
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "docs")) {
    if (entry.path().extension() == ".md") documents.push_back(entry.path());
  }
  return documents;
}

// The commands of ```sh blocks that begin with the program's name, as words.
std::vector<Words> Commands(const fs::path& document) {
  std::vector<Words> commands;
  bool in_block = false;
  for (std::string line : Split(ReadFile(document), '\n')) {
    if (line.starts_with("```")) {
      in_block = !in_block && line == "```sh";
      continue;
    }
    if (!in_block) continue;
    if (line.starts_with("$ ")) line = line.substr(2);
    line = line.substr(0, line.find(" #"));
    Words words;
    for (const std::string& word : Split(line, ' ')) {
      if (!word.empty()) words.push_back(word);
    }
    if (words.empty() || (words[0] != "trireme" && words[0] != "build/release/trireme")) continue;
    commands.emplace_back(words.begin() + 1, words.end());
  }
  return commands;
}

// DIR, FILE... stand for what only the reader has.
bool HasPlaceholder(const Words& words) {
  static const std::regex kPlaceholder("(.*[:,])?(DIR|FILE|RUN|NAME|PATH)(\\.[a-z]+|\\.\\.\\.)?");
  for (const std::string& word : words) {
    if (std::regex_match(word, kPlaceholder) || word == "|" || word == ">") return true;
  }
  return false;
}

class DocumentsTest : public WholeTest {
 protected:
  // A run of some minutes becomes one of a second: the words are what is tested.
  Words Shortened(Words words) {
    if (words.empty() || words[0] != "train") return words;
    for (const char* done : {"--dry-run", "--help", "--help-config"}) {
      if (std::find(words.begin(), words.end(), done) != words.end()) return words;
    }
    const auto epochs = std::find(words.begin(), words.end(), "--epochs");
    if (epochs != words.end()) words.erase(epochs, epochs + 2);
    return With(words, {"--steps", "2"});
  }
};

TEST_F(DocumentsTest, CommandsRun) {
  fs::create_directory_symlink(kSource / "recipes", At("recipes"));
  const bool has_fashion = fs::exists("/usr/share/datasets/fashion-mnist");
  int ran = 0;
  for (const fs::path& document : Documents()) {
    for (const Words& words : Commands(document)) {
      std::string line;
      for (const std::string& word : words) line += " " + word;
      const bool needs_data = line.find("mnist-") != line.npos || line.find("cifar") != line.npos ||
                              (line.find("fashion") != line.npos && !has_fashion);
      if (HasPlaceholder(words) || needs_data) continue;
      SCOPED_TRACE(document.string() + ": trireme" + line);
      // Two documents may train into the same folder.
      for (size_t i = 0; i + 1 < words.size(); ++i) {
        if (words[i] == "--out") fs::remove_all(At(words[i + 1]));
      }
      Succeed(Shortened(words));
      ++ran;
    }
  }
  EXPECT_TRUE(ran > 0 || !fs::exists(kSource / "README.md"));
}

TEST_F(DocumentsTest, PathsExist) {
  // In backticks, with a slash or an extension of ours; no placeholders, options or web addresses.
  const std::regex quoted("`([A-Za-z0-9_./-]+)`");
  const std::regex path(
      "(\\.?[A-Za-z0-9_-]+/)+[A-Za-z0-9_.-]*|[A-Za-z0-9_-]+\\.(md|cc|h|cmake|toml)");
  std::vector<std::string> top;
  for (const auto& entry : fs::directory_iterator(kSource)) {
    top.push_back(entry.path().filename().string());
  }
  for (const auto& entry : fs::directory_iterator(kSource / "src")) {
    top.push_back(entry.path().filename().string());
  }
  int found = 0;
  for (const fs::path& document : Documents()) {
    const std::string text = ReadFile(document);
    for (std::sregex_iterator at(text.begin(), text.end(), quoted), end; at != end; ++at) {
      std::string name = (*at)[1];
      if (name.starts_with("./")) name = name.substr(2);
      if (!std::regex_match(name, path)) continue;
      const std::string first = *fs::path(name).begin();
      const bool stands_for_any = name.find("NAME") != name.npos;
      if (stands_for_any || first == "build" ||
          std::find(top.begin(), top.end(), first) == top.end())
        continue;
      ++found;
      const bool exists = fs::exists(kSource / name) || fs::exists(kSource / "src" / name) ||
                          fs::exists(document.parent_path() / name);
      EXPECT_TRUE(exists) << document << " names `" << name << "`, which is not there";
    }
  }
  EXPECT_GT(found, 10);
}

TEST_F(DocumentsTest, ThePageOfKeysIsCurrent) {
  EXPECT_EQ(ReadFile(kSource / "docs/keys.md"), Succeed({"list", "keys"}).out)
      << "write it anew: build/release/trireme list keys > docs/keys.md";
}

TEST_F(DocumentsTest, TheHelpOfEachCommandShowsCommandsThatParse) {
  const std::regex example("^  trireme ([^#\\n]+)");
  for (const std::string command : {"train", "watch", "report", "eval", "predict", "list", "doctor",
                                    "sweep", "scale", "replay", "launch slurm"}) {
    const std::string help = Succeed(Split(command, ' ') + Words{"--help"}).out;
    const std::string examples = help.substr(std::min(help.size(), help.find("examples:")));
    int seen = 0;
    for (const std::string& line : Split(examples, '\n')) {
      std::smatch match;
      if (!std::regex_search(line, match, example)) continue;
      Words words;
      for (const std::string& word : Split(match[1].str(), ' ')) {
        if (!word.empty()) words.push_back(word);
      }
      ++seen;
      if (command == "launch slurm") Succeed(words);
      if (command != "train") continue;
      if (HasPlaceholder(words) || std::find(words.begin(), words.end(), "--resume") != words.end())
        continue;
      Succeed(words + Words{"--dry-run"});
    }
    EXPECT_GT(seen, 0) << command;
  }
}

}  // namespace
}  // namespace trireme::whole
