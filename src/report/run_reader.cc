#include "report/run_reader.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/text.h"
#include "record/run_lock.h"

namespace trireme {
namespace {

constexpr size_t kMostConfigBytes = size_t{1} << 20;
constexpr size_t kMostSummaryBytes = size_t{64} << 20;
constexpr size_t kChunkBytes = size_t{1} << 20;  // and the longest line
constexpr size_t kMostRankRecords = 100000;

double NumberIn(const Json& json, std::string_view key) {
  const Json* found = json.Find(key);
  if (!found || found->IsNull()) return NAN;
  return found->AsDouble();
}

double NumberOrZero(const Json& json, std::string_view key) {
  const double number = NumberIn(json, key);
  return std::isfinite(number) ? number : 0;
}

int64_t CountIn(const Json& json, std::string_view key) {
  return int64_t(std::clamp(NumberOrZero(json, key), -9e18, 9e18));
}

StepTimes TimesIn(const Json& json, const char* communication) {
  StepTimes times;
  times.data = NumberOrZero(json, "data");
  times.forward = NumberOrZero(json, "forward");
  times.backward = NumberOrZero(json, "backward");
  times.communication = NumberOrZero(json, communication);
  times.update = NumberOrZero(json, "update");
  times.hidden = NumberOrZero(json, "communication_hidden");
  return times;
}

std::vector<RankRecord> RanksIn(const Json& json) {
  std::vector<RankRecord> ranks;
  const Json* list = json.Find("ranks");
  if (!list) return ranks;
  for (const Json& rank : list->Items()) {
    if (ranks.size() == kMostRankRecords) break;
    ranks.push_back({int(std::clamp<int64_t>(CountIn(rank, "rank"), 0, 1 << 30)),
                     TimesIn(rank, "communication_waited"), CountIn(rank, "bytes_sent"),
                     CountIn(rank, "bytes_received")});
  }
  return ranks;
}

double BytesIn(const Json& json, const std::vector<RankRecord>& ranks) {
  double sum = 0;
  for (const RankRecord& rank : ranks) sum += double(rank.bytes_sent);
  if (!ranks.empty()) return sum;
  return NumberOrZero(json, "bytes_sent") + NumberOrZero(json, "bytes_received");
}

// `before`: the line of the same kind, from which is reckoned what this one does not say.
MetricsLine LineOf(const Json& json, const MetricsLine* before) {
  MetricsLine line;
  line.epoch = NumberIn(json, "epoch");
  line.step = NumberIn(json, "step");
  line.train_loss = NumberIn(json, "train_loss");
  line.train_accuracy = NumberIn(json, "train_accuracy");
  line.test_loss = NumberIn(json, "test_loss");
  line.test_accuracy = NumberIn(json, "test_accuracy");
  line.test_rmse = NumberIn(json, "test_rmse");
  line.test_r2 = NumberIn(json, "test_r2");
  line.lr = NumberIn(json, "lr");
  line.samples_per_second = NumberIn(json, "samples_per_second");
  line.seconds = NumberOrZero(json, "seconds");
  line.samples = NumberIn(json, "samples");
  if (std::isnan(line.samples)) {
    const double rate = std::isfinite(line.samples_per_second) ? line.samples_per_second : 0;
    line.samples = (before ? before->samples : 0) + std::round(line.seconds * rate);
  }
  line.time_s = NumberIn(json, "time");
  if (std::isnan(line.time_s)) line.time_s = (before ? before->time_s : 0) + line.seconds;
  if (const Json* times = json.Find("times")) line.times = TimesIn(*times, "communication");
  line.ranks = RanksIn(json);
  if (const Json* bound = json.Find("input_bound"); bound && bound->IsObject()) {
    const Json* text = bound->Find("text");
    if (text && text->IsString()) line.input_bound = text->AsString();
  }
  line.bytes = (before ? before->bytes : 0) + BytesIn(json, line.ranks);
  return line;
}

// Empty where it is no text.
std::string TextIn(const Json& json, std::string_view key) {
  const Json* found = json.Find(key);
  return found && found->IsString() ? found->AsString() : "";
}

RunEnd EndIn(const Json& end) {
  RunEnd found{.reason = TextIn(end, "reason")};
  const Json* signal = end.Find("signal");
  if (signal && signal->IsInt()) found.signal = int(std::clamp<int64_t>(signal->AsInt(), 0, 1000));
  return found;
}

}  // namespace

std::string RunData::Setting(std::string_view key) const {
  const size_t dot = key.find('.');
  for (const TomlEntry& entry : config) {
    if (entry.section != key.substr(0, dot) || entry.key != key.substr(dot + 1)) continue;
    return entry.value.text.empty() ? entry.value.Shown() : entry.value.text;
  }
  return "";
}

RunReader::Stamp RunReader::StampOf(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return {true, status.st_ino, int64_t(status.st_size),
          int64_t(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec};
}

RunReader::RunReader(const std::string& path) {
  data_.path = path;
  const auto normal = std::filesystem::path(path + "/.").lexically_normal();
  data_.name = normal.parent_path().filename().string();
  if (data_.name.empty() || data_.name == "." || data_.name == "..") data_.name = path;
  if (!StampOf(path + "/config.toml").there && !StampOf(path + "/metrics.jsonl").there) {
    throw UsageError("{}: is not a run: it has neither config.toml nor metrics.jsonl", path);
  }
}

void RunReader::Problem(std::string text) {
  auto& all = data_.problems;
  if (std::find(all.begin(), all.end(), text) == all.end() && all.size() < 20) {
    all.push_back(std::move(text));
  }
}

void RunReader::ReadConfig() {
  data_.config.clear();
  const std::string path = data_.path + "/config.toml";
  if (!config_.there) return Problem("config.toml is missing");
  try {
    data_.config = ParseToml(ReadFile(path, kMostConfigBytes), path);
  } catch (const Error& error) {
    Problem(error.what());
  }
}

std::optional<Json> RunReader::ReadObject(const char* name) {
  const std::string path = data_.path + "/" + name;
  try {
    Json json = ParseJson(ReadFile(path, kMostSummaryBytes), path);
    json.Members();  // an object, else an error
    return json;
  } catch (const Error& error) {
    Problem(error.what());
    return {};
  }
}

void RunReader::ReadSummary() {
  data_.summary.reset();
  if (summary_.there) data_.summary = ReadObject("summary.json");
}

void RunReader::ReadMistakes() {
  data_.mistakes.reset();
  if (mistakes_.there) data_.mistakes = ReadObject("mistakes.json");
}

void RunReader::ReadStarts() {
  data_.starts.clear();
  end_.reset();
  if (!starts_.there) return;
  const std::string path = data_.path + "/starts.jsonl";
  try {
    const std::string text = ReadFile(path, kMostConfigBytes);
    for (const std::string& line : Split(text, '\n')) {
      if (Trim(line).empty()) continue;
      Json json = ParseJson(line, path);
      json.Members();
      if (const Json* end = json.Find("end"); end && end->IsObject()) {
        end_ = EndIn(*end);
        continue;
      }
      end_.reset();
      data_.starts.push_back(std::move(json));
    }
  } catch (const Error& error) {
    Problem(error.what());
  }
}

void RunReader::ReadLine(std::string_view text) {
  ++lines_;
  if (Trim(text).empty()) return;
  try {
    const Json json = ParseJson(text, fmt::format("metrics.jsonl, line {}", lines_));
    const std::string& event = json.At("event").AsString();
    if (event != "epoch" && event != "step") return;
    auto& list = event == "epoch" ? data_.epochs : data_.steps;
    list.push_back(LineOf(json, list.empty() ? nullptr : &list.back()));
  } catch (const Error& error) {
    if (++unread_lines_ <= 3) Problem(error.what());
  }
}

// From where the last time ended to the last end of a line.
bool RunReader::ReadMetrics() {
  const std::string path = data_.path + "/metrics.jsonl";
  const Stamp now = StampOf(path);
  if (now == metrics_) return false;
  if (now.inode != metrics_.inode || now.size < int64_t(offset_)) {  // written anew by a resume
    data_.epochs.clear();
    data_.steps.clear();
    offset_ = 0;
    lines_ = unread_lines_ = 0;
    skipping_ = false;
  }
  metrics_ = now;
  if (!now.there) return true;
  try {
    const InputFile file(path);
    std::string chunk;
    while (offset_ < file.size()) {
      chunk.resize(size_t(std::min<uint64_t>(kChunkBytes, file.size() - offset_)));
      file.ReadAt(offset_, chunk.data(), chunk.size());
      const size_t end = chunk.rfind('\n');
      if (end == chunk.npos) {
        if (chunk.size() < kChunkBytes) break;  // the rest is not written yet
        Problem(fmt::format("metrics.jsonl, line {}: is longer than {}", lines_ + 1,
                            FormatBytes(double(kChunkBytes))));
        skipping_ = true;
        offset_ += chunk.size();
        continue;
      }
      for (size_t begin = 0; begin <= end;) {
        const size_t stop = chunk.find('\n', begin);
        const auto line = std::string_view(chunk).substr(begin, stop - begin);
        if (skipping_) {
          skipping_ = false;
          ++lines_;
        } else {
          ReadLine(line);
        }
        begin = stop + 1;
      }
      offset_ += end + 1;
    }
  } catch (const Error& error) {  // a file that vanishes or shrinks meanwhile
    Problem(error.what());
  }
  if (unread_lines_ > 3) Problem("metrics.jsonl: more lines could not be read");
  return true;
}

// A run tests its last weights whatever trainer.evaluate_every says: the summary has that.
void RunReader::AddFinalValues() {
  if (data_.epochs.empty() || !data_.summary) return;
  MetricsLine& last = data_.epochs.back();
  const Json* steps = data_.summary->Find("steps");
  if (!steps || !steps->IsInt() || double(steps->AsInt()) != last.step) return;
  try {
    if (std::isnan(last.test_loss)) last.test_loss = NumberIn(*data_.summary, "test_loss");
    if (std::isnan(last.test_accuracy)) {
      last.test_accuracy = NumberIn(*data_.summary, "test_accuracy");
    }
    if (std::isnan(last.test_rmse)) {
      last.test_rmse = NumberIn(*data_.summary, "test_rmse");
      last.test_r2 = NumberIn(*data_.summary, "test_r2");
    }
  } catch (const Error&) {  // damaged: then there is none
  }
}

RunState RunReader::Judge(const std::optional<bool>& held) const {
  RunSigns signs{.held = held, .end = end_};
  if (!data_.starts.empty()) signs.host = TextIn(data_.starts.back(), "host");
  if (data_.summary) {
    const std::string began = data_.starts.empty() ? "" : TextIn(data_.starts.back(), "started_at");
    const std::string ended = TextIn(*data_.summary, "ended_at");
    signs.summary_reason = TextIn(*data_.summary, "end_reason");
    if (signs.summary_reason == "done") signs.summary_reason.clear();  // as it was meant to
    // A run that was resumed has the summary of its earlier life until it ends again. A copy of a
    // run has other times of files.
    signs.summary = data_.starts.size() < 2 || summary_.changed_ns >= starts_.changed_ns ||
                    (!began.empty() && ended >= began);
  }
  return StateOf(signs, HostName());
}

// The lock is looked at before the files and again behind them: whoever had freed it by then has
// written all that it had to say, and a run that was started in between is found to run.
bool RunReader::Poll() {
  const std::string& path = data_.path;
  bool news = false;
  const auto look = [&](Stamp& stamp, const char* name, auto read) {
    const Stamp now = StampOf(path + "/" + name);
    if (now == stamp && !first_) return;
    stamp = now;
    (this->*read)();
    news = true;
  };
  auto held = RunLock::IsHeld(path);
  // The end is read first: what it stands for has been written by then.
  look(starts_, "starts.jsonl", &RunReader::ReadStarts);
  look(summary_, "summary.json", &RunReader::ReadSummary);
  look(mistakes_, "mistakes.json", &RunReader::ReadMistakes);
  look(config_, "config.toml", &RunReader::ReadConfig);
  news = ReadMetrics() || news;
  AddFinalValues();
  if (held == false) held = RunLock::IsHeld(path);
  int64_t newest_ns = 0;
  for (const Stamp* stamp : {&starts_, &summary_, &config_, &metrics_}) {
    newest_ns = std::max(newest_ns, stamp->changed_ns);
  }
  data_.news_at = double(newest_ns) * 1e-9;
  const RunState::Kind before = data_.state.kind;
  data_.state = Judge(held);
  news = news || (before != data_.state.kind);
  first_ = false;
  return news;
}

RunData ReadRun(const std::string& path) {
  RunReader reader(path);
  reader.Poll();
  return reader.data();
}

}  // namespace trireme
