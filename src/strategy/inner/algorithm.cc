#include "strategy/inner/algorithm.h"

#include <algorithm>

#include "base/error.h"
#include "strategy/inner/all_reduce.h"
#include "strategy/inner/device_sum.h"
#include "strategy/inner/ordered_sum.h"
#include "strategy/inner/shared.h"
#include "strategy/step/tags.h"
#include "transport/collective/link_model.h"

namespace trireme {
namespace {

WireType WireOf(const AllReduceNeeds& needs) {
  return needs.wire == "bf16" ? WireType::kBf16 : WireType::kF32;
}

constexpr std::string_view kDevice = "device";

// Why devices do not add up among themselves; empty: they do. All ranks decide alike.
std::string WhyNotDevices(const AllReduceNeeds& needs, Group& group) {
  if (!needs.devices) return "the host adds up what its engine computes with";
  if (needs.deterministic) {
    return "the order in which devices add depends on the number of ranks, and --deterministic "
           "keeps one";
  }
  if (WireOf(needs) != WireType::kF32)
    return "devices add in float32, not strategy.wire = \"bf16\"";
  return WhyNoDeviceSum(*needs.devices, group);
}

// Whether they do, where they are asked for or nobody chose.
bool DevicesAddUp(const AllReduceNeeds& needs, Group& group, const Log* log) {
  const bool wanted = NeedsDevices(needs.algorithm);
  if (!wanted && (needs.algorithm != "auto" || !needs.devices)) return false;
  const std::string why_not = WhyNotDevices(needs, group);
  if (wanted && !why_not.empty()) {
    throw UsageError("strategy.algorithm = \"{}\": {}; auto sums through the host where it must",
                     kDevice, why_not);
  }
  if (log && group.rank() == 0) {
    if (why_not.empty()) {
      log->Info("strategy", "gradients are summed by the devices ({})", needs.devices->name());
    } else {
      log->Info("strategy", "gradients are summed through the host: {}", why_not);
    }
  }
  return why_not.empty();
}

// Whether summands are added where they lie. All ranks decide alike.
bool SharesMemory(const AllReduceNeeds& needs, Group& group) {
  const std::string& algorithm = needs.algorithm;
  if (algorithm != "auto" && algorithm != "shared") return false;
  const bool can = group.shared_memory() && needs.most_summands <= int(SharedMemory::kMostParts) &&
                   WireOf(needs) == WireType::kF32;  // in memory nothing travels
  if (!can && algorithm == "shared") {
    throw UsageError(
        "strategy.algorithm = \"shared\" needs ranks that share memory (transport threads or shm), "
        "at most {} shards per rank and strategy.wire = \"f32\"",
        SharedMemory::kMostParts);
  }
  return can;
}

}  // namespace

std::vector<std::string> AlgorithmNames() {
  std::vector<std::string> names{"auto", std::string(kDevice), "shared"};
  for (const AllReduceAlgorithm& algorithm : AllReduceAlgorithms()) names.push_back(algorithm.name);
  return names;
}

bool AddsInShardOrder(std::string_view algorithm) {
  return algorithm == "auto" || algorithm == "shared" || algorithm == "chain";
}

bool NeedsDevices(std::string_view algorithm) { return algorithm == kDevice; }

std::string ChooseAlgorithm(const AllReduceNeeds& needs, Group& group) {
  if (needs.algorithm != "auto" || group.size() == 1) return needs.algorithm;
  if (needs.deterministic || DevicesAddUp(needs, group, nullptr)) return "auto";
  if (SharesMemory(needs, group)) return "auto";
  const WireType wire = WireOf(needs);
  HostGroups hosts(group, HostOfRank(group, kTagSum));
  const LinkModel model = MeasureLink(hosts, kTagSum);
  const double bytes = double(needs.bytes) / sizeof(float) * double(BytesOf(wire));
  // The model knows nothing of what a native sum does: it is taken only where asked for.
  auto candidates = UsableAllReduces(group, wire);
  std::erase_if(candidates,
                [](const AllReduceAlgorithm* a) { return std::string_view(a->name) == "native"; });
  return ChooseAllReduce(model, hosts.shape(), bytes, candidates).name;
}

std::unique_ptr<Inner> MakeAllReduce(const AllReduceNeeds& needs, Group& group) {
  if (DevicesAddUp(needs, group, needs.log)) {
    return std::make_unique<InnerDeviceSum>(*needs.devices, group);
  }
  if (SharesMemory(needs, group)) return std::make_unique<InnerShared>(group, needs.summands);
  if (needs.deterministic) {
    return std::make_unique<InnerOrderedSum>(group, needs.shards, needs.summands);
  }
  return std::make_unique<InnerAllReduce>(group, FindAllReduce(needs.algorithm), WireOf(needs));
}

}  // namespace trireme
