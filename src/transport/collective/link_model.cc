#include "transport/collective/link_model.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "base/clock.h"
#include "transport/collective/broadcast.h"
#include "transport/collective/element.h"

namespace trireme {
namespace {

constexpr size_t kShort = 8, kLong = 1 << 20;  // bytes
constexpr int kShortTrips = 20, kLongTrips = 3;

double Median(std::vector<double>& values) {
  const auto middle = values.begin() + ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Seconds for one way: half of the median time there and back. The first trip warms up.
double TripTime(Group& group, Tag tag, int other, bool starts, std::span<std::byte> bytes,
                int trips) {
  std::vector<double> times;
  for (int i = 0; i <= trips; ++i) {
    const Stopwatch watch;
    if (starts) group.Send(other, tag, bytes).Wait();
    group.Receive(other, tag, bytes).Wait();
    if (!starts) group.Send(other, tag, bytes).Wait();
    if (i > 0) times.push_back(watch.seconds() / 2);
  }
  return Median(times);
}

LinkSpeed MeasurePair(Group& group, Tag tag, int other, bool starts, std::span<std::byte> buffer) {
  const double brief = TripTime(group, tag, other, starts, buffer.first(kShort), kShortTrips);
  const double lengthy = TripTime(group, tag, other, starts, buffer.first(kLong), kLongTrips);
  return {brief, std::max(0.0, lengthy - brief) / double(kLong - kShort)};
}

LinkSpeed Slower(const LinkSpeed& a, const LinkSpeed& b) {
  return {std::max(a.latency_s, b.latency_s), std::max(a.seconds_per_byte, b.seconds_per_byte)};
}

// The slower of the links to both neighbours on the circle of ranks. Link r joins ranks r and
// r + 1: first those of even r, then of odd r; where their number is odd, the last one by itself.
LinkSpeed MeasureNeighbours(Group& group, Tag tag, std::span<std::byte> buffer) {
  const int n = group.size(), rank = group.rank(), links = n == 2 ? 1 : n;
  LinkSpeed slowest;
  for (int round = 0; round < 3; ++round) {
    for (const int link : {rank, (rank + n - 1) % n}) {  // as its first end, as its second
      const int due = link == n - 1 && n % 2 == 1 ? 2 : link % 2;
      if (n == 1 || link >= links || due != round) continue;
      const bool starts = link == rank;
      const int other = starts ? (rank + 1) % n : link;
      slowest = Slower(slowest, MeasurePair(group, tag, other, starts, buffer));
    }
  }
  return slowest;
}

double MeasureAdding() {
  constexpr size_t kValues = kAllReduceScratch / 2;
  std::vector<float> from(kValues, 1.0f), to(kValues);
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    const Stopwatch watch;
    AsTheyAre<float>::Add(from.data(), to.data(), kValues);
    times.push_back(watch.seconds());
  }
  TRIREME_ASSERT(to[kValues - 1] == 9.0f);  // and so the loop is not left out
  return Median(times) / double(kValues * sizeof(float));
}

}  // namespace

LinkModel MeasureLink(HostGroups& hosts, Tag tag) {
  std::vector<std::byte> buffer(kLong);
  LinkModel own;
  own.any = MeasureNeighbours(hosts.all(), tag, buffer);
  own.inner = hosts.shape().hosts > 1 ? MeasureNeighbours(hosts.inner(), tag, buffer) : own.any;
  own.seconds_per_added_byte = MeasureAdding();
  LinkModel slowest;  // of the same list everywhere, so the same everywhere
  for (const LinkModel& model : AllGather(hosts.all(), tag, own)) {
    slowest.any = Slower(slowest.any, model.any);
    slowest.inner = Slower(slowest.inner, model.inner);
    slowest.seconds_per_added_byte =
        std::max(slowest.seconds_per_added_byte, model.seconds_per_added_byte);
  }
  return slowest;
}

double EstimateAllReduce(const LinkModel& model, const RankShape& shape, double bytes,
                         const AllReduceAlgorithm& algorithm) {
  const AllReduceCost cost = algorithm.cost(shape, bytes);
  return model.any.latency_s * cost.steps + model.any.seconds_per_byte * cost.bytes +
         model.inner.latency_s * cost.inner_steps +
         model.inner.seconds_per_byte * cost.inner_bytes +
         model.seconds_per_added_byte * cost.added;
}

const AllReduceAlgorithm& ChooseAllReduce(const LinkModel& model, const RankShape& shape,
                                          double bytes,
                                          std::span<const AllReduceAlgorithm* const> candidates) {
  TRIREME_ASSERT(!candidates.empty());
  return **std::min_element(candidates.begin(), candidates.end(), [&](auto* a, auto* b) {
    return EstimateAllReduce(model, shape, bytes, *a) < EstimateAllReduce(model, shape, bytes, *b);
  });
}

}  // namespace trireme
