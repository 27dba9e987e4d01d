#include "record/run_directory.h"

#include <sys/stat.h>

#include <cctype>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "record/timestamp.h"

namespace trireme {
namespace {

constexpr char kConfig[] = "config.toml";
constexpr char kMetrics[] = "metrics.jsonl";
constexpr char kSummary[] = "summary.json";
constexpr char kMistakes[] = "mistakes.json";
constexpr char kStarts[] = "starts.jsonl";

std::string Inside(const std::string& path, const char* name) { return path + "/" + name; }

// Only what belongs to an empty run may be there: what a process left that was killed before its
// config was written.
void RefuseUnlessEmpty(const std::string& path) {
  if (Exists(Inside(path, kConfig))) {
    throw UsageError(
        "{}: is already a run; continue it with --resume {}, or give a different --out", path,
        path);
  }
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (name != RunLock::kName && !name.starts_with(std::string(".") + kConfig)) {
      throw UsageError("{}: is not empty (it holds {}); give a different --out", path, name);
    }
  }
}

std::string ReadableStem(std::string stem) {
  for (char& c : stem) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '-';
  }
  while (stem.starts_with('.') || stem.starts_with('-')) stem.erase(0, 1);
  return stem.empty() ? "run" : stem;
}

std::string TimeText(std::time_t now) {
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  return std::string(text, std::strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &local));
}

// True for a whole line that belongs to the first `step` steps. One of a part of an epoch is of a
// run's end, and the run goes on.
bool BelongsTo(std::string_view line, int64_t step) {
  try {
    const Json record = ParseJson(line, kMetrics);
    const Json* written = record.Find("step");
    const Json* epoch = record.Find("epoch");
    if (epoch && epoch->AsDouble() != std::floor(epoch->AsDouble())) return false;
    return written == nullptr || written->AsInt() <= step;
  } catch (const Error&) {
    return false;  // cut short, or overwritten by a failing disk
  }
}

}  // namespace

RunDirectory::RunDirectory(std::string path, RunLock lock)
    : path_(std::move(path)), lock_(std::move(lock)) {
  OpenMetrics();
}

void RunDirectory::OpenMetrics() {
  metrics_.emplace(Inside(path_, kMetrics), OutputFile::Start::kAtEnd);
}

RunDirectory RunDirectory::Create(const std::string& path, const std::string& config) {
  MakeDirectories(path);
  RefuseUnlessEmpty(path);
  RunLock lock(path);
  RefuseUnlessEmpty(path);  // two may have come this far, and the first has finished meanwhile
  RemoveLeftovers(path);
  ReplaceFile(Inside(path, kConfig), config);
  return RunDirectory(path, std::move(lock));
}

RunDirectory RunDirectory::CreateNamed(const std::string& parent, const std::string& stem,
                                       const std::string& config, std::time_t now) {
  MakeDirectories(parent);
  const std::string wanted = parent + "/" + ReadableStem(stem) + "-" + TimeText(now);
  std::string path = wanted;
  for (int number = 2; mkdir(path.c_str(), 0777) != 0; ++number) {
    if (errno != EEXIST) {
      throw Error("{}: cannot create the folder: {}", path, std::generic_category().message(errno));
    }
    path = wanted + "-" + std::to_string(number);
  }
  return Create(path, config);
}

RunDirectory RunDirectory::Resume(const std::string& path) {
  ReadRunConfig(path);
  RunLock lock(path);
  RemoveLeftovers(path);
  RunDirectory run(path, std::move(lock));
  run.resumed_ = true;
  return run;
}

void RunDirectory::CheckThere() const {
  if (lock_.IsAt(path_) && Exists(Inside(path_, kConfig))) return;
  throw Error(
      "{}: the run's folder was removed, moved or replaced while it trained; nothing more is "
      "written (if it was moved, continue it with --resume)",
      path_);
}

void RunDirectory::WriteConfig(const std::string& config) {
  CheckThere();
  ReplaceFile(Inside(path_, kConfig), config);
}

void RunDirectory::AppendMetrics(const Json& line) {
  CheckThere();
  metrics_->Write(line.Text() + "\n");
}

void RunDirectory::SyncMetrics() {
  CheckThere();
  metrics_->Sync();
}

void RunDirectory::WriteSummary(const Json& summary) {
  CheckThere();
  ReplaceFile(Inside(path_, kSummary), summary.Text(2) + "\n");
}

void RunDirectory::WriteMistakes(const Json& mistakes) {
  CheckThere();
  ReplaceFile(Inside(path_, kMistakes), mistakes.Text(1) + "\n");
}

void RunDirectory::AppendStart(const Json& line) {
  CheckThere();
  if (Exists(Inside(path_, kStarts))) {  // a server that was killed and started again begins twice
    const std::string text = ReadFile(Inside(path_, kStarts));
    if (text.ends_with(line.Text() + "\n")) return;
  }
  OutputFile file(Inside(path_, kStarts), OutputFile::Start::kAtEnd);
  file.Write(line.Text() + "\n");
  file.Close();
}

void RunDirectory::AppendStop(int signal, int64_t step) {
  Json end = Json::Object();
  end.Add("reason", "signal").Add("signal", signal).Add("at", UtcNow()).Add("step", step);
  AppendStart(Json::Object().Add("end", std::move(end)));
}

std::string RunDirectory::started_at() const {
  try {
    const std::string text = ReadFile(Inside(path_, kStarts), 1 << 20);
    const Json first = ParseJson(text.substr(0, text.find('\n')), kStarts);
    const Json* at = first.Find("started_at");
    return at ? at->AsString() : "";
  } catch (const Error&) {
    return "";
  }
}

Json RunDirectory::last_start() const {
  Json last;
  try {
    for (const std::string& line : Split(ReadFile(Inside(path_, kStarts), 1 << 20), '\n')) {
      if (line.empty()) continue;
      Json start = ParseJson(line, kStarts);
      if (start.Find("command")) last = std::move(start);
    }
  } catch (const Error&) {  // cut short by a kill: what stands before it counts
  }
  return last;
}

void RunDirectory::DropMetricsAfter(int64_t step) {
  const std::string name = Inside(path_, kMetrics);
  const std::string content = ReadFile(name);
  std::string kept;
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = content.find('\n', begin);
    if (end == content.npos) break;  // cut short by a kill
    const std::string_view line = std::string_view(content).substr(begin, end - begin);
    if (BelongsTo(line, step)) kept.append(line).append("\n");
    begin = end + 1;
  }
  if (kept != content) ReplaceFile(name, kept);
  OpenMetrics();  // the old file may no longer be the one of that name
}

std::string ReadRunConfig(const std::string& path) {
  const std::string name = Inside(path, kConfig);
  if (!Exists(name)) throw UsageError("{}: is not a run: it has no {}", path, kConfig);
  return ReadFile(name, 1 << 20);
}

}  // namespace trireme
