#include "study/published.h"

#include <fmt/format.h>

#include <cmath>

#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"

namespace trireme {
namespace {

constexpr std::string_view kDdp =
    "a thesis on ResNet-18 with ImageNet and PyTorch's DistributedDataParallel on the Marconi100 "
    "cluster; the times are as quoted elsewhere, since the thesis itself was not available";

std::vector<double> Clocks(std::initializer_list<std::string_view> texts) {
  std::vector<double> seconds;
  for (const std::string_view text : texts) {
    const auto value = ParseClock(text);
    TRIREME_ASSERT(value);
    seconds.push_back(*value);
  }
  return seconds;
}

std::vector<PublishedTable> MakeTables() {
  using Kind = PublishedTable::Kind;
  return {
      {.name = "ddp-gpus",
       .title = "training time over GPUs of one node",
       .axis = "GPUs",
       .kind = Kind::kDevices,
       .x = {1, 2, 3, 4},
       .seconds = Clocks({"57:46", "37:12", "32:57", "32:06"}),
       .source = kDdp},
      {.name = "ddp-nodes",
       .title = "training time over nodes",
       .axis = "nodes",
       .kind = Kind::kNodes,
       .x = {1, 2, 4, 8, 16},
       .seconds = Clocks({"32:06", "16:42", "8:34", "4:30", "2:19"}),
       .source = kDdp},
      {.name = "ddp-loaders",
       .title = "training time over loader workers",
       .axis = "loader workers",
       .kind = Kind::kLoaders,
       .x = {1, 2, 4, 8, 16},
       .seconds = Clocks({"2:08:24", "1:21:22", "47:34", "33:35", "32:06"}),
       .source = kDdp},
      {.name = "ddp-precision",
       .title = "training time by precision",
       .axis = "precision",
       .kind = Kind::kNames,
       .names = {"float32", "mixed"},
       .seconds = Clocks({"32:06", "29:54"}),
       .source = kDdp},
  };
}

}  // namespace

std::span<const PublishedTable> PublishedTables() {
  static const std::vector<PublishedTable> kTables = MakeTables();
  return kTables;
}

const PublishedTable& FindPublished(std::string_view name) {
  std::vector<std::string> names;
  for (const PublishedTable& table : PublishedTables()) {
    if (table.name == name) return table;
    names.emplace_back(table.name);
  }
  throw UsageError("no published table is called \"{}\"; there are {}{}", name,
                   fmt::join(names, ", "), DidYouMean(name, names));
}

std::optional<double> ParseClock(std::string_view text) {
  const std::vector<std::string> parts = Split(text, ':');
  if (parts.size() > 3) return {};
  double seconds = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto number = ParseNumber<double>(parts[i]);
    if (!number || *number < 0 || (i > 0 && *number >= 60)) return {};
    seconds = seconds * 60 + *number;
  }
  return seconds;
}

std::string FormatClock(double seconds) {
  const int64_t whole = std::llround(std::max(0.0, seconds));
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  return hours ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
               : fmt::format("{}:{:02}", minutes, whole % 60);
}

}  // namespace trireme
