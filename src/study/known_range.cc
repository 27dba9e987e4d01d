#include "study/known_range.h"

#include <fmt/core.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "record/json.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFolders = 1000;
constexpr size_t kMostBytes = size_t{1} << 20;

struct KnownRange {
  std::string folder;
  double lowest = 0, suggestion = 0;
  fs::file_time_type when;
};

Recipe ReadCompleteRecipe(const std::string& file) {
  Recipe recipe;
  Sections sections;
  Bind(sections, recipe);
  LoadRecipe(sections, file);
  return recipe;
}

// Whether a rate means the same for both.
bool LearnsAlike(const Recipe& a, const Recipe& b) {
  return a.model.name == b.model.name && a.model.layers == b.model.layers &&
         a.model.norm == b.model.norm && a.data.source == b.data.source &&
         a.trainer.batch == b.trainer.batch &&
         a.trainer.batch_per_worker == b.trainer.batch_per_worker &&
         a.optimizer.name == b.optimizer.name && a.optimizer.momentum == b.optimizer.momentum;
}

// Of a folder of trireme tune whose range test is done and found a rate; anything else is none.
std::optional<KnownRange> RangeIn(const fs::path& folder, const Recipe& recipe) {
  const std::string file = folder / "range.json";
  std::error_code error;
  const auto when = fs::last_write_time(file, error);
  if (error) return {};
  try {
    const Json json = ParseJson(ReadFile(file, kMostBytes), file);
    const Json &lowest = json.At("lowest"), &suggestion = json.At("suggestion");
    if (lowest.IsNull() || suggestion.IsNull()) return {};
    if (!LearnsAlike(ReadCompleteRecipe(folder / "recipe.toml"), recipe)) return {};
    return KnownRange{folder.lexically_normal().string(), lowest.AsDouble(), suggestion.AsDouble(),
                      when};
  } catch (const Error&) {  // damaged, or of another program
    return {};
  }
}

}  // namespace

std::string RateAboveRange(const Recipe& recipe, const std::string& runs) {
  std::optional<KnownRange> newest;
  std::error_code error;
  size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(runs, error)) {
    if (++seen > kMostFolders) break;
    const auto found = RangeIn(entry.path(), recipe);
    if (found && (!newest || found->when > newest->when)) newest = found;
  }
  if (!newest || recipe.optimizer.lr <= newest->lowest) return "";
  return fmt::format(
      "optimizer.lr {:g} is far above what the range test in {} found for this recipe: the loss "
      "was lowest at {:.2g}; try --lr {:g}",
      recipe.optimizer.lr, newest->folder, newest->lowest, newest->suggestion);
}

}  // namespace trireme
