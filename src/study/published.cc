#include "study/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"

namespace trireme {
namespace {

constexpr std::string_view kThesis =
    "the thesis on ResNet-18 with ImageNet, PyTorch's DistributedDataParallel and Marconi100";
constexpr std::string_view kMpiCourse = "the MPI course report";
constexpr std::string_view kPrototype = "the report on the Go prototype";
constexpr std::string_view kFollowUp = "the follow-up report";

constexpr PublishedClaim kClaims[] = {
    {"scenes-epoch",
     "an epoch of the scenes takes about 2 minutes with all-reduce and about 3.6 with send and "
     "receive, 1.8 times as long",
     kMpiCourse},
    {"bsp-workers",
     "more workers are faster up to 16, as many as the machine has threads; above 10,000 samples "
     "less so",
     kPrototype},
    {"resnet-memory",
     "the GPU's memory in use grows linearly with the batch, from 3 GB at 5 to 28 GB at 50",
     kFollowUp},
    {"resnet-cpu", "at batch 30 the CPU takes about 5 times as long as the GPU", kFollowUp},
    {"resnet-python",
     "PyTorch takes 1/30 of the Go program's time, 1/20 where both are in a container", kFollowUp},
    {"large-batch",
     "an epoch of ImageNet takes 16 minutes with batch 256 and 30 seconds with 11,264 (Goyal et "
     "al. 2017)",
     kFollowUp},
    {"overlap",
     "S-Caffe gains about 15 % by overlapping the broadcast (SC-OB) and about 20 % by overlapping "
     "the reduction, too (SC-OBR)",
     kFollowUp},
    {"ddp-whole",
     "90 epochs take 3 days 14 h 36 min on one GPU and 3 h 28 min on 64, 25 times as fast",
     kThesis},
    {"ddp-loaders", "for four GPUs 16 loader workers are best", kThesis},
    {"ddp-batch", "the best batch is 32", kThesis},
};

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
       .source = kThesis},
      {.name = "ddp-nodes",
       .title = "training time over nodes",
       .axis = "nodes",
       .kind = Kind::kNodes,
       .x = {1, 2, 4, 8, 16},
       .seconds = Clocks({"32:06", "16:42", "8:34", "4:30", "2:19"}),
       .source = kThesis},
      {.name = "ddp-loaders",
       .title = "training time over loader workers",
       .axis = "loader workers",
       .kind = Kind::kLoaders,
       .x = {1, 2, 4, 8, 16},
       .seconds = Clocks({"2:08:24", "1:21:22", "47:34", "33:35", "32:06"}),
       .source = kThesis},
      {.name = "ddp-precision",
       .title = "training time by precision",
       .axis = "precision",
       .kind = Kind::kNames,
       .names = {"float32", "mixed"},
       .seconds = Clocks({"32:06", "29:54"}),
       .source = kThesis},
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

std::span<const PublishedClaim> PublishedClaims() { return kClaims; }

const PublishedClaim& FindClaim(std::string_view name) {
  const auto at = std::ranges::find(kClaims, name, &PublishedClaim::name);
  TRIREME_ASSERT(at != std::end(kClaims));
  return *at;
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
