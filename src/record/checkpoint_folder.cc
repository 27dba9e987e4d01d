#include "record/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/error.h"

namespace trireme {

namespace fs = std::filesystem;

std::string StepName(int64_t step) { return fmt::format("step-{:08}", step); }

std::optional<int64_t> StepOf(std::string_view name) {
  if (!name.starts_with("step-")) return std::nullopt;
  name.remove_prefix(5);
  int64_t step = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

std::vector<int64_t> StepsIn(const std::string& directory) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    const auto step = StepOf(name);
    if (step && name == StepName(*step)) steps.push_back(*step);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw Error("{}: cannot list the folder: {}", directory, error.message());
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::optional<int64_t> LinkIn(const std::string& directory, const char* link) {
  std::error_code error;
  const fs::path target = fs::read_symlink(fs::path(directory) / link, error);
  if (error) return std::nullopt;
  return StepOf(target.string());
}

}  // namespace trireme
