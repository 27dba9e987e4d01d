#include "cli/recipe_flags.h"

#include <algorithm>

namespace trireme {

std::optional<std::string> FollowedRecipe(const Args& args,
                                          const std::vector<std::string>& varied) {
  if (auto named = args.Optional("RECIPE")) return named;
  for (const char* key : {"data.source", "model.name", "model.layers"}) {
    if (args.Sets(key) || std::ranges::find(varied, key) != varied.end()) return std::nullopt;
  }
  return "iris";
}

}  // namespace trireme
