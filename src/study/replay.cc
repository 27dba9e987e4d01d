#include "study/replay.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "study/experiments.h"

namespace trireme {
namespace {

constexpr ReplayKind kReplays[] = {
    {.name = "bsp-mnist",
     .summary = "bulk-synchronous workers on digits: P samples x N workers",
     .make = BspMnist},
    {.name = "iris-mpi",
     .summary = "Iris: send and receive against all-reduce, over ranks",
     .make = IrisMpi,
     .over_messages = true},
    {.name = "scenes-mpi",
     .summary = "scene images: send and receive against all-reduce, over ranks",
     .make = ScenesMpi,
     .over_messages = true},
    {.name = "resnet50-batch",
     .summary = "ResNet-50: time over the batch size",
     .make = Resnet50Batch,
     .on_devices = true},
    {.name = "ddp-sweep",
     .summary = "ranks, nodes, loader workers, batch size, precision",
     .make = DdpSweep,
     .on_devices = true},
};

}  // namespace

std::span<const ReplayKind> ReplayKinds() { return kReplays; }

const ReplayKind& FindReplay(std::string_view name) {
  std::vector<std::string> names;
  for (const ReplayKind& kind : kReplays) {
    if (kind.name == name) return kind;
    names.emplace_back(kind.name);
  }
  throw UsageError("no replay is called \"{}\"; there are {}{}", name, fmt::join(names, ", "),
                   DidYouMean(name, names));
}

}  // namespace trireme
