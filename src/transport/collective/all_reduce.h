#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "transport/collective/host_groups.h"

namespace trireme {

// values = the sum of all ranks' values, the same bits on every rank. Every member calls it, with
// the same length and a tag that nobody else uses meanwhile.
//
// The order of additions depends on the algorithm and the number of ranks, never on time. No memory
// is taken: `scratch` holds what travels, kAllReduceScratch values or more, of any contents.
constexpr size_t kAllReduceScratch = 2 << 16;

// How values travel (strategy.wire). As bf16 every partial sum is rounded to bfloat16 (to nearest,
// ties to even) when it leaves a rank and added in float32; the result is a bfloat16 on all ranks.
// A rank that is alone rounds nothing.
enum class WireType { kF32, kBf16 };
constexpr size_t BytesOf(WireType wire) { return wire == WireType::kBf16 ? 2 : 4; }

// What a sum costs, where `bytes` is what one rank's values take on the wire. Things that happen at
// the same time count once.
struct AllReduceCost {
  double steps = 0;        // messages one after another
  double bytes = 0;        // that pass a link one after another
  double inner_steps = 0;  // the same inside hosts, where an algorithm tells hosts apart
  double inner_bytes = 0;
  double added = 0;  // bytes of values that are added one after another
  double sent = 0;   // bytes, by the rank that sends most
};

struct AllReduceAlgorithm {
  using Function = void (*)(HostGroups&, Tag, std::span<float> values, std::span<float> scratch);
  const char* name;
  const char* help;
  AllReduceCost (*cost)(const RankShape&, double bytes);
  Function f32;
  Function bf16;  // null: none
  Function On(WireType wire) const { return wire == WireType::kBf16 ? bf16 : f32; }
};

std::span<const AllReduceAlgorithm> AllReduceAlgorithms();
const AllReduceAlgorithm& FindAllReduce(std::string_view name);  // UsageError if there is none

// Those that work here: "native" only where the transport has one. Every member calls it.
std::vector<const AllReduceAlgorithm*> UsableAllReduces(Group& group, WireType wire);

// UsageError where the algorithm does not work here.
void AllReduceSum(const AllReduceAlgorithm& algorithm, WireType wire, HostGroups& hosts, Tag tag,
                  std::span<float> values, std::span<float> scratch);

// The ring.
constexpr size_t kRingScratch = kAllReduceScratch;
void AllReduceSum(Group& group, Tag tag, std::span<float> values, std::span<float> scratch);

// For the few numbers of a trainer (losses, counts): takes its own scratch memory.
void AllReduceSum(Group& group, Tag tag, std::span<double> values);

}  // namespace trireme
