#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/text.h"
#include "record/checkpoint.h"
#include "record/checkpoint_folder.h"
#include "record/state_files.h"

namespace trireme {
namespace {

constexpr size_t kLargestState = 64 << 20;

// The file's own hash covers everything else in it.
Json ReadState(const std::string& path) {
  const Json read = ParseJson(ReadFile(path, kLargestState), path);
  try {
    if (read.At("format").AsInt() != kStateFormat) {
      throw Error("has format {}; this program reads {}", read.At("format").Text(), kStateFormat);
    }
    Json covered = Json::Object();
    for (const auto& [key, value] : read.Members()) {
      if (key != "sha256") covered.AddNew(key, value);
    }
    if (Sha256Hex(covered.Text()) != read.At("sha256").AsString()) {
      throw Error("is damaged: its content is not what was written");
    }
  } catch (const Error& error) {
    throw Error("{}: {}", path, error.what());
  }
  return read;
}

void CheckFile(const std::string& path, const Json& written) {
  const int64_t bytes = written.At("bytes").AsInt();
  const uint64_t size = InputFile(path).size();
  if (size != static_cast<uint64_t>(bytes)) {
    throw Error("{}: is damaged: it has {} bytes, but {} were written", path, size, bytes);
  }
  if (Sha256OfFile(path) != written.At("sha256").AsString()) {
    throw Error("{}: is damaged: its content is not what was written", path);
  }
}

// The steps in the order in which to try them. `latest` is asked for even if the list lacks it:
// listing a folder that somebody writes into can miss a new name.
std::vector<int64_t> Candidates(const std::string& directory) {
  const auto latest = LinkIn(directory, kLatest);
  std::vector<int64_t> steps = StepsIn(directory);
  if (latest) {
    std::erase(steps, *latest);
    steps.push_back(*latest);
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

std::optional<FoundCheckpoint> FirstGood(const std::string& directory,
                                         const std::vector<int64_t>& steps, std::string& problems) {
  for (const int64_t step : steps) {
    try {
      Checkpoint checkpoint(directory + "/" + StepName(step));
      if (!problems.empty()) problems += fmt::format("; going back to step {}", step);
      return FoundCheckpoint{std::move(checkpoint), problems};
    } catch (const Error& error) {
      problems += (problems.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  return std::nullopt;
}

// "15 (best), 30 (last)"
std::string ListText(const std::string& directory) {
  const auto best = LinkIn(directory, kBest), latest = LinkIn(directory, kLatest);
  std::string text;
  for (const int64_t step : StepsIn(directory)) {
    const bool is_best = step == best, is_last = step == latest;
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", step,
                        is_best && is_last ? " (best, last)"
                        : is_best          ? " (best)"
                        : is_last          ? " (last)"
                                           : "");
  }
  return text;
}

}  // namespace

Checkpoint::Checkpoint(const std::string& folder)
    : Checkpoint(CheckpointFiles{.state = folder + "/" + kStateFile,
                                 .model = folder + "/" + kModelFile,
                                 .optimizer = folder + "/" + kOptimizerFile}) {}

Checkpoint::Checkpoint(CheckpointFiles files) : files_(std::move(files)) {
  const Json state = ReadState(files_.state);
  step_ = state.At("step").AsInt();
  CheckFile(files_.model, state.At("files").At(kModelFile));
  CheckFile(files_.optimizer, state.At("files").At(kOptimizerFile));
  const Json& values = state.At("values");
  model_ = std::make_unique<StateFileReader>(files_.model, values);
  state_ = std::make_unique<StateFileReader>(files_.optimizer, values);
}

Checkpoint::~Checkpoint() = default;
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;

bool HasCheckpoint(const std::string& directory) { return !Candidates(directory).empty(); }

std::optional<FoundCheckpoint> OpenLatestCheckpoint(const std::string& directory) {
  for (;;) {
    const std::vector<int64_t> steps = Candidates(directory);
    if (steps.empty()) return std::nullopt;
    std::string problems;
    if (auto found = FirstGood(directory, steps, problems)) return found;
    // A running training may have replaced all that we looked at: then look again.
    if (Candidates(directory) == steps) {
      throw Error("{}: no checkpoint can be read: {}", directory, problems);
    }
  }
}

bool HasBestCheckpoint(const std::string& directory) {
  const auto best = LinkIn(directory, kBest);
  return best && Exists(directory + "/" + StepName(*best));
}

std::optional<FoundCheckpoint> OpenCheckpoint(const std::string& directory,
                                              const std::string& which) {
  if (which == "last" || !HasCheckpoint(directory)) return OpenLatestCheckpoint(directory);
  const bool asks_best = which == "best";
  for (;;) {
    const auto step = asks_best ? LinkIn(directory, kBest) : ParseNumber<int64_t>(which);
    try {
      const std::string folder = directory + "/" + StepName(step.value_or(-1));
      if (!step || !Exists(folder)) {
        throw UsageError("--checkpoint {}: {} has no such checkpoint; it has those of steps {}",
                         which, directory, ListText(directory));
      }
      return FoundCheckpoint{Checkpoint(folder), ""};
    } catch (const Error&) {
      // A running training may have found a better one meanwhile: then look again.
      if (!asks_best || LinkIn(directory, kBest) == step) throw;
    }
  }
}

}  // namespace trireme
