#include "cli/launch_words.h"

#include <cctype>
#include <filesystem>

#include "base/files.h"
#include "cli/train.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

void Append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

RunWords ReadRunWords(const Args& args, const std::vector<std::string>& own, bool elsewhere) {
  const std::vector<std::string> words = args.Many("COMMAND");
  if (words.empty() || words[0] != "train") {
    throw UsageError("put the command after --, as in: -- train iris --out runs/iris");
  }
  const Args train = ReadTrainWords(std::span(words).subspan(1));
  for (const char* flag : {"--resume", "--dry-run", "--help-config", "--transport", "--ranks"}) {
    if (!train.Has(flag)) continue;
    throw UsageError(
        "{} cannot be used after --: the launcher decides how train is started; remove it", flag);
  }
  const auto run = train.Value("--out");
  if (!run || run->empty()) {
    throw UsageError("train needs --out DIR, where the run is found when it is started again");
  }
  RunWords result{.run = *run, .first = {"train"}, .resume = {"train", "--resume", *run}};
  const auto recipe = train.Optional("RECIPE");
  if (recipe) result.first.push_back(*recipe);
  Append(result.first, own);
  Append(result.first, train.FlagsWithout({}));
  Append(result.resume, own);
  Append(result.resume, train.FlagsWithout({"--out", "--init"}));
  const bool is_file = recipe && (recipe->find('/') != recipe->npos || recipe->ends_with(".toml"));
  if (!elsewhere || !is_file || Exists(*recipe)) {
    CheckTrainWords(ReadTrainWords(std::span(result.first).subspan(1)));
  }
  return result;
}

std::string JobName(const std::string& run) {
  fs::path path = fs::path(run).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::string name = path.filename().string();
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '-';
  }
  return name.find_first_not_of(".-") == name.npos ? "trireme" : name;
}

bool WriteLaunchFile(const Args& args, Process& process, const std::string& text) {
  const auto file = args.Value("--out");
  if (!file || process.out.Is(*file)) {
    process.out.Write(text);
    return false;
  }
  ReplaceFile(*file, text);
  return true;
}

}  // namespace trireme
