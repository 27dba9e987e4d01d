#include "study/replay.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "study/experiments.h"

namespace trireme {
namespace {

constexpr ReplayKind kReplays[] = {
    {"bsp-mnist", "bulk-synchronous workers on digits: P samples x N workers", BspMnist},
    {"iris-mpi", "Iris: send and receive against all-reduce, over ranks", IrisMpi, true},
    {"scenes-mpi", "scene images: send and receive against all-reduce, over ranks", ScenesMpi,
     true},
    {"resnet50-batch", "ResNet-50: time over the batch size", Resnet50Batch},
    {"ddp-sweep", "ranks, nodes, loader workers, batch size, precision", DdpSweep},
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
