#include "engine/cuda/choices.h"

#include <fmt/core.h>

#include <cstdlib>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "base/text.h"

namespace trireme::cuda {
namespace {

constexpr std::string_view kFirstLine = "trireme: how products are computed on a card, 1";
constexpr std::string_view kBetween = " = ";

}  // namespace

Choices::Choices(std::string path, std::string target)
    : path_(std::move(path)), target_(std::move(target)), ways_(Read()) {}

Choices::Ways Choices::Read() const {
  if (path_.empty() || !Exists(path_)) return {};
  Ways ways;
  try {
    const std::vector<std::string> lines = Split(ReadFile(path_, size_t{1} << 24), '\n');
    if (lines.size() < 3 || lines[0] != kFirstLine || lines[1] != target_) return {};
    if (!lines.back().empty()) return {};  // its end is missing
    for (size_t i = 2; i + 1 < lines.size(); ++i) {
      const size_t at = lines[i].find(kBetween);
      if (at == std::string::npos) return {};
      const auto way = ParseNumber<int>(lines[i].substr(at + kBetween.size()));
      if (!way || *way < 0) return {};
      ways[lines[i].substr(0, at)] = *way;
    }
  } catch (const Error&) {
    return {};
  }
  return ways;
}

std::optional<int> Choices::Find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = ways_.find(key);
  return found == ways_.end() ? std::nullopt : std::optional(found->second);
}

void Choices::Set(const std::string& key, int way) {
  const std::lock_guard lock(mutex_);
  ways_[key] = way;
}

void Choices::Save() {
  if (path_.empty()) return;
  const std::lock_guard lock(mutex_);
  ways_.merge(Read());
  std::string text = fmt::format("{}\n{}\n", kFirstLine, target_);
  for (const auto& [key, way] : ways_) text += fmt::format("{}{}{}\n", key, kBetween, way);
  try {
    MakeDirectories(path_.substr(0, path_.rfind('/')));
    ReplaceFile(path_, text);
  } catch (const Error&) {
  }
}

std::string ChoicesFile(std::string_view target) {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value ? value : "");
  };
  std::string folder = variable("XDG_CACHE_HOME");
  if (folder.empty() && !variable("HOME").empty()) folder = variable("HOME") + "/.cache";
  if (folder.empty()) return "";
  uint64_t hash = 0;
  for (const char c : target) hash = Hash(hash, uint64_t(static_cast<unsigned char>(c)));
  return fmt::format("{}/trireme/cuda-{:016x}.txt", folder, hash);
}

}  // namespace trireme::cuda
