#include "cli/recipe_flags.h"

namespace trireme {

std::vector<std::string> SettingsOf(const Args& args) {
  std::vector<std::string> settings = args.Values("--set");
  for (const Flag& flag : kRecipeFlags) {
    if (flag.key.empty() || !args.Has(flag.name)) continue;
    const std::string value = flag.value.empty() ? "true" : args.Value(flag.name).value();
    settings.push_back(std::string(flag.key) + "=" + value);
  }
  // One of the two says how long; the one on the command line wins, as in `train`.
  if (args.Has("--epochs") && !args.Has("--steps")) settings.push_back("trainer.steps=0");
  return settings;
}

}  // namespace trireme
