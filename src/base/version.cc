#include "base/version.h"

#include <fmt/format.h>

namespace trireme {

std::string BuildText(std::string_view version, std::string_view commit) {
  constexpr size_t kShown = 12, kDigits = 40;
  const std::string_view changes = commit.size() > kDigits ? commit.substr(kDigits) : "";
  return fmt::format("{} (commit {}{})", version, commit.substr(0, kShown), changes);
}

}  // namespace trireme
