// The documents tell the truth: their commands run, their paths exist, printed pages are current.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <regex>

#include "base/text.h"
#include "support/whole_test.h"

namespace trireme::whole {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = TRIREME_SOURCE_DIR;

std::vector<fs::path> Documents() {
  std::vector<fs::path> documents;
  for (const char* folder : {".", "src"}) {
    for (const auto& entry : fs::directory_iterator(kSource / folder)) {
      if (entry.path().extension() == ".md") documents.push_back(entry.path());
    }
  }
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "docs")) {
    if (entry.path().extension() == ".md") documents.push_back(entry.path());
  }
  std::sort(documents.begin(), documents.end());
  return documents;
}

// A line of a document: in which kind of block it stands ("" between blocks, "text" in one without
// a name).
struct Line {
  std::string block, text;
};

std::vector<Line> Lines(const fs::path& document) {
  std::vector<Line> lines;
  std::string block;
  for (const std::string& text : Split(ReadFile(document), '\n')) {
    if (!text.starts_with("```")) {
      lines.push_back({block, text});
    } else if (block.empty()) {
      block = text == "```" ? "text" : text.substr(3);
    } else {
      block.clear();
    }
  }
  return lines;
}

// Of docs/origins.md, where every row of the table has the command that runs it: each once.
void AddTableCommands(const std::string& row, std::vector<std::string>& commands) {
  const std::regex quoted("`((trireme|mpirun|scripts/)[^`]+)`");
  for (std::sregex_iterator at(row.begin(), row.end(), quoted), end; at != end; ++at) {
    const std::string command = (*at)[1];
    if (std::ranges::find(commands, command) == commands.end()) commands.push_back(command);
  }
}

// Every line of a ```sh block, and what stands behind "$ " in a session that is shown.
std::vector<std::string> Commands(const fs::path& document) {
  const bool table = document.filename() == "origins.md";
  std::vector<std::string> commands;
  for (const auto& [block, text] : Lines(document)) {
    if (table && text.starts_with("|")) AddTableCommands(text, commands);
    const bool shown = block == "text" && text.starts_with("$ ");
    if (block != "sh" && !shown) continue;
    std::string line = text.substr(shown ? 2 : 0);
    line = Trim(line.substr(0, line.find(" #")));
    if (!line.empty() && !line.starts_with("#")) commands.push_back(line);
  }
  return commands;
}

// What is not run as it stands, by how the line begins, and why.
struct Exception {
  enum How { kNot, kDryRun };  // a dry run parses every word and lays out the run
  std::string begins;
  How how;
  const char* why;
};
const Exception kExceptions[] = {
    {"./quickstart", Exception::kNot, "installs and builds"},
    {"./test", Exception::kNot, "this is one of its tests"},
    {"build/release/trireme eval runs/quickstart", Exception::kNot,
     "shows what quickstart trained"},
    {"build/debug/", Exception::kNot, "another build"},
    {"cmake ", Exception::kNot, "builds"},
    {"g++ ", Exception::kNot, "tests/library_test.cc runs it"},
    {"head -c 32 ", Exception::kNot, "is for the shell"},
    {"tar -xf trireme-", Exception::kNot, "needs what scripts/release makes"},
    {"trireme-VERSION-linux", Exception::kNot, "needs what scripts/release makes"},
    {"pip install trireme", Exception::kNot, "needs what scripts/release makes"},
    {"apptainer ", Exception::kNot, "needs Apptainer"},
    {"ch-run ", Exception::kNot, "needs Charliecloud"},
    {"sudo apt install", Exception::kNot, "needs what scripts/release makes"},
    {"scripts/fetch-portable", Exception::kNot, "fetches packages"},
    {"trireme data get mnist", Exception::kNot, "needs a network: src/data/get/ plays the mirror"},
    {"trireme data get cifar10", Exception::kNot, "needs its file: src/data/get/ plays the mirror"},
    {"trireme data get intel-scenes", Exception::kNot, "refuses: src/data/get/ brings folders"},
    {"scripts/soak-async", Exception::kNot,
     "minutes: tests/centre_kill_test.cc does it less often"},
    {"python3 -m venv", Exception::kNot, "fetches packages"},
    {"/tmp/tb/bin/python", Exception::kNot, "needs TensorBoard"},
    {"scripts/check", Exception::kNot, "compiles everything once more"},
    {"scripts/compare-programs", Exception::kNot, "takes minutes of a quiet machine"},
    {"scripts/compare-with-pytorch", Exception::kNot, "needs PyTorch"},
    {"scripts/compare-with-onnxruntime", Exception::kNot, "needs onnxruntime"},
    {"scripts/make-pictures", Exception::kNot, "writes into docs/pictures/"},
    {"for link in", Exception::kNot, "eight trainings in a loop of the shell"},
    {"trireme train fashion-mlp --model mlp:784-512", Exception::kNot, "is in that loop"},
    {"done; trireme scale acc/", Exception::kNot, "ends that loop"},
    {"trireme train fashion-cnn --device cuda", Exception::kNot,
     "needs a card: src/engine/cuda/ tests it"},
    {"trireme join ", Exception::kNot, "needs a run that listens: tests/join_test.cc joins one"},
    {"find DIR ", Exception::kNot, "is for the shell: tests/predict_test.cc reads a list"},
    {"trireme memory-box ", Exception::kNot, "serves until Ctrl-C: tests/memory_box_test.cc"},
    {"trireme train --ranks 4 --strategy hybrid --set transport.memory", Exception::kDryRun,
     "needs a box: tests/memory_box_test.cc"},
    {"trireme train --ranks 4 --strategy easgd --set strategy.centre=memory --set transport.memory",
     Exception::kDryRun, "needs boxes: tests/memory_box_test.cc"},
    {"trireme watch RUN --http", Exception::kNot, "serves until Ctrl-C: tests/watch_test.cc"},
    {"trireme sweep --vary strategy.overlap", Exception::kNot,
     "minutes: tests/ranks_test.cc trains with every overlap"},
    {"trireme compare fashion-mlp", Exception::kNot, "minutes: tests/compare_test.cc compares"},
    {"trireme replay resnet50-batch", Exception::kNot,
     "minutes on a busy machine: src/study/replay_test.cc checks its plan"},
    {"trireme replay iris-mpi --transport mpi", Exception::kNot,
     "another launcher: tests/sweep_test.cc runs it"},
    {"mpirun ", Exception::kDryRun, "another launcher: tests/ranks_test.cc starts it"},
    {"torchrun ", Exception::kDryRun, "another launcher: tests/launch_test.cc plays it"},
    {"TRIREME_RANK=", Exception::kDryRun, "several machines"},
    {"trireme train recipes/fashion-cnn.toml --set transport.hosts", Exception::kDryRun,
     "several machines"},
    {"trireme train --model resnet18 --data images:DIR", Exception::kDryRun, "minutes"},
    {"trireme train --model resnet18 --data pack:", Exception::kDryRun, "minutes"},
};

const Exception* FindException(const std::string& command) {
  for (const Exception& each : kExceptions) {
    if (command.starts_with(each.begins)) return &each;
  }
  return nullptr;
}

// The words of a command that begin with the program's name, without it; none: it is another one.
// What stands in double quotes is one word, or a part of one.
std::optional<Words> ProgramWords(const std::string& command) {
  Words words;
  bool found = false, quoted = false;
  for (std::string word : Split(command, ' ')) {
    const bool continues = quoted, said = !word.empty();
    const auto quotes = std::erase(word, '"');
    quoted = quoted != (quotes % 2 == 1);
    if (found && continues) {
      words.back() += " " + word;
    } else if (found && said) {
      words.push_back(word);
    }
    found = found || word == "trireme" || word == "build/release/trireme";
  }
  return found ? std::optional(words) : std::nullopt;
}

class DocumentsTest : public WholeTest {
 protected:
  // A run of some minutes becomes one of a second: the words are what is tested.
  Words Shortened(Words words) {
    if (!words.empty() && words[0] == "replay" && words.size() > 1) {
      return With(words, {"--steps", "2", "--repeat", "1"});
    }
    if (words.empty() || words[0] != "train") return words;
    for (const char* done : {"--dry-run", "--help", "--help-config"}) {
      if (std::find(words.begin(), words.end(), done) != words.end()) return words;
    }
    const auto epochs = std::find(words.begin(), words.end(), "--epochs");
    if (epochs != words.end()) words.erase(epochs, epochs + 2);
    return With(words, {"--steps", "2"});
  }

  // DIR, FILE, RUN, NETWORK, SCENES, *.jpg: what only the reader has, under just these names.
  void MakeStandIns(const fs::path& document) {
    const auto bytes = [](std::string_view hex) {
      std::string out;
      for (size_t i = 0; i < hex.size(); i += 2) {
        out += char(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
      }
      return out;
    };
    const std::string picture = bytes(
        "89504e470d0a1a0a0000000d4948445200000002000000020802000000fdd49a73000000164944415478da6360"
        "6088ea618862605810d5b3200a0013fa03c158ac35360000000049454e44ae426082");
    for (int i = 0; i < 24; ++i) {
      for (const char* folder : {"DIR", "your-folder"}) {
        Write(fmt::format("{}/{}/{}.png", folder, i % 2 ? "day" : "night", i), picture);
      }
    }
    Write("a.jpg", picture);
    for (int i = 0; i < 24; ++i) Write(fmt::format("SCENES/{}/{}.png", i % 6, i), picture);
    std::string rows = "Id,when,long,wide,species\n";
    for (int i = 0; i < 30; ++i) {
      rows += fmt::format("{},{},{},{},{}\n", i, i * 7 % 5, i % 11, i % 3, i % 3 ? "elm" : "oak");
    }
    std::string prices = "size,rooms,price\n";
    for (int i = 0; i < 30; ++i) prices += fmt::format("{},{},{}.5\n", i * 7 % 30, i % 4, i);
    Write("prices.csv", prices);
    for (const char* name : {"FILE", "FILE.csv", "mine.csv", "your.csv"}) Write(name, rows);
    Write("NETWORK", "hidden: dense 12\nrelu\nout: dense classes\n");
    Write("hosts.txt", "localhost 4\n");
    Write("secret", "oars");
    fs::remove_all(At("RUN"));
    const bool of_pictures = document.filename() == "images.md";
    Succeed({"train", "--quiet", "--steps", "2", "--model", "mlp", "--data",
             of_pictures ? "images:DIR" : "csv:FILE", "--out", "RUN"});
  }

  void Check(const std::string& command) {
    const Exception* exception = FindException(command);
    if (exception && exception->how == Exception::kNot) return;
    // Of a package that ./test installs; elsewhere it may be missing.
    const bool has_fashion = fs::exists("/usr/share/datasets/fashion-mnist");
    if (!has_fashion && command.find("fashion") != command.npos) return;
    std::optional<Words> words = ProgramWords(command);
    ASSERT_TRUE(words) << "it is no command of trireme: run it, or name it in kExceptions";
    if (exception) {
      Succeed(*words + Words{"--dry-run"});
      return;
    }
    // A shell would have seen these.
    for (std::string& word : *words) {
      if (word == "*.jpg") word = "a.jpg";
      EXPECT_TRUE(word != "|" && word != ">" && word != "&&") << "name it in kExceptions";
    }
    // Two documents may train into the same folder, two commands make the same file.
    for (size_t i = 0; i + 1 < words->size(); ++i) {
      if ((*words)[i] == "--out") fs::remove_all(At((*words)[i + 1]));
    }
    if (words->size() > 3 && (*words)[1] == "pack") fs::remove(At((*words)[3]));
    Succeed(Shortened(*words));
  }
};

TEST_F(DocumentsTest, CommandsRun) {
  fs::create_directory_symlink(kSource / "recipes", At("recipes"));
  int seen = 0;
  for (const fs::path& document : Documents()) {
    const std::vector<std::string> commands = Commands(document);
    const bool stand_ins =
        document.parent_path().filename() == "docs" || document.filename() == "README.md";
    if (stand_ins && !commands.empty()) MakeStandIns(document);
    for (const std::string& command : commands) {
      SCOPED_TRACE(document.string() + ": " + command);
      Check(command);
      ++seen;
    }
  }
  EXPECT_GT(seen, 70);
}

TEST_F(DocumentsTest, CommandsStandInBlocksOfTheShell) {
  const std::regex command(
      "^( {4})?(\\$ )?(trireme|build/release/trireme|scripts/[a-z-]+|\\./test) .*");
  for (const fs::path& document : Documents()) {
    for (const auto& [block, text] : Lines(document)) {
      const bool shown = block == "text" && text.starts_with("$ ");
      if (block == "sh" || shown || (block.empty() && !text.starts_with("    "))) continue;
      EXPECT_FALSE(std::regex_match(text, command))
          << document << ": make it a block ```sh: " << text;
    }
  }
}

TEST_F(DocumentsTest, ExceptionsAreNeeded) {
  for (const Exception& exception : kExceptions) {
    int used = 0;
    for (const fs::path& document : Documents()) {
      for (const std::string& command : Commands(document)) {
        used += FindException(command) == &exception;
      }
    }
    EXPECT_GT(used, 0) << exception.begins << ": no document has it";
  }
}

// So that a change of a word is a change of a line. scripts/wrap-docs does it.
TEST_F(DocumentsTest, ParagraphsAreWrapped) {
  constexpr long kWidth = 100;
  const std::regex unbroken("^\\s*([-*+] |[0-9]+\\. )?\\S+$");  // an address, a path
  for (const fs::path& document : Documents()) {
    for (const auto& [block, text] : Lines(document)) {
      if (!block.empty() || text.starts_with("|") || std::regex_match(text, unbroken)) continue;
      const auto continues = [](char c) { return (c & 0xC0) == 0x80; };  // a letter's later bytes
      const long columns = long(text.size()) - std::count_if(text.begin(), text.end(), continues);
      EXPECT_LE(columns, kWidth) << document << ": scripts/wrap-docs would wrap: " << text;
    }
  }
}

TEST_F(DocumentsTest, TheTableOfPerformanceIsThatOfTheHistory) {
  const std::string table = Shell(kSource / "scripts/bench-table");
  EXPECT_NE(ReadFile(kSource / "docs/performance.md").find(table), std::string::npos)
      << "write it anew: scripts/bench-table --write";
}

TEST_F(DocumentsTest, DecisionsAreListedAndShort) {
  const std::string list = ReadFile(kSource / "docs/decisions/README.md");
  for (const auto& entry : fs::directory_iterator(kSource / "docs/decisions")) {
    const std::string name = entry.path().filename();
    if (name == "README.md") continue;
    EXPECT_NE(list.find("(" + name + ")"), list.npos) << name << " is not in the list";
    const std::string text = ReadFile(entry.path());
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40) << name;
    for (const char* part : {"**Question.**", "**Command", "**Look again**"}) {
      EXPECT_NE(text.find(part), text.npos) << name << " lacks " << part;
    }
  }
  const std::string page = ReadFile(kSource / "docs/performance.md");
  EXPECT_LE(std::count(page.begin(), page.end(), '\n'), 150);
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

TEST_F(DocumentsTest, LinksLeadSomewhereAndPicturesAreSmall) {
  const std::regex link("\\]\\(([^)#: ]+)\\)");  // no web address, no place in the same page
  for (const fs::path& document : Documents()) {
    const std::string text = ReadFile(document);
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
      const fs::path to = document.parent_path() / (*at)[1].str();
      EXPECT_TRUE(fs::exists(to)) << document << " links to " << (*at)[1];
    }
  }
  for (const auto& entry : fs::directory_iterator(kSource / "docs/pictures")) {
    EXPECT_LT(entry.file_size(), 150'000u) << entry.path() << " (scripts/make-pictures)";
  }
}

TEST_F(DocumentsTest, ThePageOfKeysIsCurrent) {
  EXPECT_EQ(ReadFile(kSource / "docs/keys.md"), Succeed({"list", "keys"}).out)
      << "write it anew: build/release/trireme list keys > docs/keys.md";
}

// DIR, FILE... stand for what only the reader has.
bool HasPlaceholder(const Words& words) {
  static const std::regex kPlaceholder("(.*[:,])?(DIR|FILE|RUN|NAME|PATH)(\\.[a-z]+|\\.\\.\\.)?");
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return std::regex_match(word, kPlaceholder) || word == "|" || word == ">";
  });
}

TEST_F(DocumentsTest, TheHelpOfEachCommandShowsCommandsThatParse) {
  const std::regex example("^  trireme ([^#\\n]+)");
  for (const std::string command : {"train", "watch", "report", "eval", "predict", "list", "doctor",
                                    "sweep", "tune", "scale", "replay", "launch slurm"}) {
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
