#include "transport/collective/all_reduce.h"

#include <fmt/format.h>

#include <bit>
#include <string>

#include "base/assert.h"
#include "base/text.h"
#include "transport/collective/chain.h"
#include "transport/collective/halving.h"
#include "transport/collective/ring.h"
#include "transport/collective/tree.h"
#include "transport/collective/two_level.h"

namespace trireme {
namespace {

using Floats = std::span<float>;
using AsFloat = AsTheyAre<float>;

// N ranks, n bytes of values on the wire.

// 2 (N - 1) steps, 2 (N - 1) / N n bytes sent by each rank: the fewest possible.
AllReduceCost RingCost(const RankShape& shape, double bytes) {
  const double n = shape.ranks, round = (n - 1) / n * bytes;
  return {.steps = 2 * (n - 1), .bytes = 2 * round, .added = round, .sent = 2 * round};
}
template <class W>
void Ring(HostGroups& hosts, Tag tag, Floats values, Floats scratch) {
  RingSum(LaneOf<W>(hosts.all(), tag, scratch), hosts.all().size(), values);
}

// 2 (N - 1) steps, n bytes sent by the ranks at the ends, 2 n by those between. The first piece
// goes all the way alone, the others follow it closely.
AllReduceCost ChainCost(const RankShape& shape, double bytes) {
  constexpr double kPieceBytes = kAllReduceScratch / AsFloat::kStages * sizeof(float);
  const double n = shape.ranks, first = std::min(bytes, kPieceBytes), rest = bytes - first;
  const double times = std::min(n - 1, 2.0);
  return {.steps = 2 * (n - 1),
          .bytes = 2 * (n - 1) * first + times * rest,
          .added = (n - 1) * first + (n > 1 ? rest : 0),
          .sent = times * bytes};
}
template <class W>
void Chain(HostGroups& hosts, Tag tag, Floats values, Floats scratch) {
  ChainSum(LaneOf<W>(hosts.all(), tag, scratch), values);
}

// P = the power of two in N: 2 log2 P steps, 2 (P - 1) / P n bytes sent by each rank; where P < N
// two more steps of n bytes each.
AllReduceCost HalvingCost(const RankShape& shape, double bytes) {
  const unsigned places = std::bit_floor(unsigned(shape.ranks));
  const double round = (places - 1.0) / places * bytes;
  const double excess = int(places) < shape.ranks ? 1 : 0;
  return {.steps = 2.0 * std::countr_zero(places) + 2 * excess,
          .bytes = 2 * round + 2 * excess * bytes,
          .added = round + excess * bytes,
          .sent = 2 * round + excess * bytes};
}
template <class W>
void Halving(HostGroups& hosts, Tag tag, Floats values, Floats scratch) {
  HalvingSum(LaneOf<W>(hosts.all(), tag, scratch), values);
}

// 2 log2 N steps (rounded up) of n bytes each; log2 N of them are sent by rank 0.
AllReduceCost TreeCost(const RankShape& shape, double bytes) {
  const double depth = std::bit_width(unsigned(shape.ranks) - 1);
  return {.steps = 2 * depth,
          .bytes = 2 * depth * bytes,
          .added = depth * bytes,
          .sent = depth * bytes};
}
template <class W>
void Tree(HostGroups& hosts, Tag tag, Floats values, Floats scratch) {
  TreeSum(LaneOf<W>(hosts.all(), tag, scratch), values);
}

// H hosts with L lanes each: 2 (L - 1) steps and 2 (L - 1) / L n bytes inside; 2 (H - 1) steps and
// 2 (H - 1) / H n / L bytes between, times L, because the lanes share their host's link. Ranks
// beyond the lanes: two more steps of n bytes inside for each that a lane takes.
AllReduceCost TwoLevelCost(const RankShape& shape, double bytes) {
  const double lanes = shape.fewest, hosts = shape.hosts;
  const double guests = (shape.most + shape.fewest - 1) / shape.fewest - 1;
  const double inner = (lanes - 1) / lanes * bytes, outer = (hosts - 1) / hosts * bytes;
  return {.steps = 2 * (hosts - 1),
          .bytes = 2 * outer,
          .inner_steps = 2 * (lanes - 1) + 2 * guests,
          .inner_bytes = 2 * inner + 2 * guests * bytes,
          .added = inner + outer / lanes + guests * bytes,
          .sent = 2 * inner + 2 * outer / lanes + guests * bytes};
}

// Nobody says how it is done: the fewest steps and the fewest bytes that are possible.
AllReduceCost NativeCost(const RankShape& shape, double bytes) {
  AllReduceCost cost = RingCost(shape, bytes);
  cost.steps = TreeCost(shape, bytes).steps;
  return cost;
}
void Native(HostGroups& hosts, Tag, Floats values, Floats) {
  if (hosts.all().NativeSum(values)) return;
  throw UsageError(
      "all-reduce \"native\": this transport has none of its own; choose a different algorithm");
}

constexpr AllReduceAlgorithm kAlgorithms[] = {
    {"ring", "fewest bytes, one step per rank", RingCost, Ring<AsFloat>, Ring<AsBfloat16>},
    {"halving-doubling", "few steps and few bytes; best when the number of ranks is a power of two",
     HalvingCost, Halving<AsFloat>, Halving<AsBfloat16>},
    {"tree", "fewest steps, for short messages", TreeCost, Tree<AsFloat>, Tree<AsBfloat16>},
    {"two-level", "inside each host, between hosts, inside again", TwoLevelCost,
     TwoLevelSum<AsFloat>, TwoLevelSum<AsBfloat16>},
    {"chain", "adds in the order of ranks", ChainCost, Chain<AsFloat>, Chain<AsBfloat16>},
    {"native", "the transport's own, where it has one", NativeCost, Native, nullptr},
};

}  // namespace

std::span<const AllReduceAlgorithm> AllReduceAlgorithms() { return kAlgorithms; }

const AllReduceAlgorithm& FindAllReduce(std::string_view name) {
  std::vector<std::string> names;
  for (const AllReduceAlgorithm& algorithm : kAlgorithms) {
    if (name == algorithm.name) return algorithm;
    names.push_back(algorithm.name);
  }
  throw UsageError("all-reduce \"{}\" is unknown; use {}{}", name, fmt::join(names, ", "),
                   DidYouMean(name, names));
}

std::vector<const AllReduceAlgorithm*> UsableAllReduces(Group& group, WireType wire) {
  const bool native = group.NativeSum({});  // asks: there is nothing to add
  std::vector<const AllReduceAlgorithm*> usable;
  for (const AllReduceAlgorithm& algorithm : kAlgorithms) {
    if (algorithm.On(wire) && (native || algorithm.f32 != Native)) usable.push_back(&algorithm);
  }
  return usable;
}

void AllReduceSum(const AllReduceAlgorithm& algorithm, WireType wire, HostGroups& hosts, Tag tag,
                  Floats values, Floats scratch) {
  TRIREME_ASSERT(scratch.size() >= kAllReduceScratch);
  const AllReduceAlgorithm::Function function = algorithm.On(wire);
  if (!function) {
    throw UsageError("all-reduce \"{}\" cannot carry bf16; use f32 (strategy.wire)",
                     algorithm.name);
  }
  if (hosts.all().size() == 1) return;
  function(hosts, tag, values, scratch.first(kAllReduceScratch));
}

void AllReduceSum(Group& group, Tag tag, Floats values, Floats scratch) {
  HostGroups hosts(group);
  AllReduceSum(kAlgorithms[0], WireType::kF32, hosts, tag, values, scratch);
}

void AllReduceSum(Group& group, Tag tag, std::span<double> values) {
  std::vector<double> scratch(2 * (values.size() / size_t(group.size()) + 1));
  RingSum(LaneOf<AsTheyAre<double>>(group, tag, scratch), group.size(), values);
}

}  // namespace trireme
