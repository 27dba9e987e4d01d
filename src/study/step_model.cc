#include "study/step_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/assert.h"

namespace trireme {
namespace {

constexpr double kMegabyte = 1e6;  // as strategy.bucket_mb counts

std::vector<std::string> Candidates(const StepCluster& cluster) {
  if (cluster.shared_memory) return {"shared"};
  std::vector<std::string> names;
  for (const AllReduceAlgorithm& algorithm : AllReduceAlgorithms()) {
    const std::string_view name = algorithm.name;
    if (name == "native" || (name == "two-level" && cluster.ranks_per_node < 2)) continue;
    names.emplace_back(name);
  }
  return names;
}

}  // namespace

double StepModel::SamplesPerWorker(int ranks) const {
  return batch_per_worker ? batch : std::ceil(batch / ranks);
}

double StepModel::StepsPerEpoch(int ranks) const {
  return std::ceil(samples / (batch_per_worker ? batch * ranks : batch));
}

std::string_view StepForecast::Bound() const {
  const std::pair<double, std::string_view> parts[] = {{compute_s, "compute"},
                                                       {data_s, "loader"},
                                                       {straggler_s, "stragglers"},
                                                       {latency_s, "latency"},
                                                       {bandwidth_s, "bandwidth"}};
  return std::max_element(std::begin(parts), std::end(parts),
                          [](auto& a, auto& b) { return a.first < b.first; })
      ->second;
}

RankShape ShapeOf(const StepCluster& cluster, int ranks) {
  const int per = std::clamp(cluster.ranks_per_node, 1, ranks);
  const int hosts = (ranks + per - 1) / per;
  const int last = ranks - (hosts - 1) * per;
  return {ranks, hosts, last, per};
}

std::vector<StepModel::Stretch> CutStretches(const StepModel& model, double bucket_bytes) {
  std::vector<StepModel::Stretch> buckets;
  StepModel::Stretch open;
  for (const StepModel::Stretch& stretch : model.stretches) {
    open = {open.bytes + stretch.bytes, stretch.share};
    if (open.bytes < bucket_bytes) continue;
    buckets.push_back(std::exchange(open, {}));
  }
  if (open.bytes > 0) buckets.push_back(open);
  return buckets;
}

// E[max] = integral of 1 - F^n above 0, less that of F^n below, F the normal distribution.
double ExpectedMaximum(int n) {
  TRIREME_ASSERT(n >= 1);
  constexpr double kStep = 1e-3, kEnd = 9;
  double sum = 0;
  for (double x = kStep / 2; x < kEnd; x += kStep) {
    const double above = std::erfc(x / std::sqrt(2.0)) / 2;
    sum += -std::expm1(n * std::log1p(-above)) - std::pow(above, n);
  }
  return sum * kStep;
}

std::string AutomaticAlgorithm(const StepModel& model, const StepCluster& cluster, int ranks,
                               double bucket_bytes) {
  if (cluster.shared_memory) return "shared";
  double most = 0;
  for (const auto& bucket : CutStretches(model, bucket_bytes)) most = std::max(most, bucket.bytes);
  std::vector<const AllReduceAlgorithm*> candidates;
  for (const std::string& name : Candidates(cluster)) candidates.push_back(&FindAllReduce(name));
  return ChooseAllReduce(cluster.link, ShapeOf(cluster, ranks), most * model.wire_factor,
                         candidates)
      .name;
}

BestChoice FindBestChoice(const StepModel& model, const StepCluster& cluster, int ranks) {
  BestChoice best;
  for (const std::string& algorithm : Candidates(cluster)) {
    for (double size = kMegabyte / 4; size <= 256 * kMegabyte; size *= 2) {
      const StepChoice choice{algorithm, size};
      const StepForecast forecast = SimulateStep(model, cluster, ranks, choice);
      // Of equals the larger bucket: fewer messages for the same time.
      if (best.forecast.step_s == 0 || forecast.step_s < best.forecast.step_s * (1 - 1e-9) ||
          (algorithm == best.choice.algorithm &&
           forecast.step_s <= best.forecast.step_s * (1 + 1e-9))) {
        best = {choice, forecast};
      }
      if (CutStretches(model, size).size() <= 1) break;
    }
  }
  return best;
}

}  // namespace trireme
