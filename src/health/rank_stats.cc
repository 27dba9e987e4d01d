#include "health/rank_stats.h"

#include <algorithm>

#include "strategy/step/tags.h"
#include "transport/collective/broadcast.h"

namespace trireme {
namespace {

constexpr size_t kNumbers = 18;  // before the silences

std::vector<double> ValuesOf(const RankStats& own) {
  const StepTimes& t = own.rank.times;
  const LoaderRecord& l = own.rank.loader;
  std::vector<double> values = {t.data,
                                t.forward,
                                t.backward,
                                t.communication,
                                t.update,
                                t.hidden,
                                double(own.rank.bytes_sent),
                                double(own.rank.bytes_received),
                                double(l.threads),
                                double(l.requests),
                                l.read,
                                l.decode,
                                l.resize,
                                l.cpu,
                                l.seconds,
                                l.ready_at_take,
                                l.ready_s,
                                l.full};
  values.insert(values.end(), own.silences.begin(), own.silences.end());
  return values;
}

RankStats Unpack(int rank, std::span<const double> v, size_t ranks) {
  if (v.size() != kNumbers + ranks) {
    throw Error("rank {} sent {} numbers for its epoch instead of {}", rank, v.size(),
                kNumbers + ranks);
  }
  return {.rank = {.rank = rank,
                   .times = {.data = v[0],
                             .forward = v[1],
                             .backward = v[2],
                             .communication = v[3],
                             .update = v[4],
                             .hidden = v[5]},
                   .bytes_sent = int64_t(v[6]),
                   .bytes_received = int64_t(v[7]),
                   .loader = {.threads = int(v[8]),
                              .requests = int64_t(v[9]),
                              .read = v[10],
                              .decode = v[11],
                              .resize = v[12],
                              .cpu = v[13],
                              .seconds = v[14],
                              .ready_at_take = v[15],
                              .ready_s = v[16],
                              .full = v[17]}},
          .silences = {v.begin() + kNumbers, v.end()}};
}

}  // namespace

std::vector<RankStats> GatherNumbers(Group& group, const RankStats& own) {
  const auto values = Gather(group, kTagTimes, 0, ValuesOf(own));
  std::vector<RankStats> all;
  for (size_t r = 0; r < values.size(); ++r) {
    all.push_back(Unpack(int(r), values[r], group.size()));
  }
  return all;
}

RankShare ShareOf(const StepTimes& times) {
  return {.data = times.data,
          .compute = times.forward + times.backward + times.update,
          .waited = times.communication};
}

std::vector<RankShare> SharesOf(std::span<const RankStats> all) {
  std::vector<RankShare> shares;
  for (const RankStats& numbers : all) shares.push_back(ShareOf(numbers.rank.times));
  for (size_t r = 0; r < all.size() && all.size() > 1; ++r) {
    double least = 1e300;
    for (size_t other = 0; other < all.size(); ++other) {
      if (other != r) least = std::min(least, all[other].silences[r]);
    }
    shares[r].silent = least;
  }
  return shares;
}

}  // namespace trireme
