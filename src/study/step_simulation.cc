// The events of a step, one after the other.
#include <algorithm>
#include <cmath>
#include <deque>
#include <queue>
#include <vector>

#include "base/assert.h"
#include "study/step_model.h"

namespace trireme {
namespace {

constexpr int kAhead = 2;     // steps whose samples are fetched while an earlier one computes
constexpr int kWarmUp = 3;    // steps until it is regular,
constexpr int kMeasured = 6;  // and those that count

// Meetings of all ranks in memory that all address: each adds its stretch of all summands and
// writes it to all.
AllReduceCost SharedCost(double ranks, double bytes) {
  const double round = (ranks - 1) / ranks * bytes;
  return {.steps = 2, .bytes = 2 * round, .added = round};
}

struct SumSeconds {
  double latency = 0, bandwidth = 0, adding = 0;
};

SumSeconds SecondsFor(const LinkModel& link, const AllReduceCost& cost) {
  return {link.any.latency_s * cost.steps + link.inner.latency_s * cost.inner_steps,
          link.any.seconds_per_byte * cost.bytes + link.inner.seconds_per_byte * cost.inner_bytes,
          link.seconds_per_added_byte * cost.added};
}

class StepSimulation {
 public:
  StepSimulation(const StepModel& model, const StepCluster& cluster, int ranks,
                 const StepChoice& choice)
      : cluster_(cluster) {
    const double samples = model.SamplesPerWorker(ranks);
    slow_ = 1 + cluster.jitter * ExpectedMaximum(ranks);
    forward_s_ = model.forward.At(samples) + model.fetch_s_per_sample * samples;
    backward_s_ = model.backward.At(samples);
    update_s_ = model.update_s;
    load_s_ = model.loader_s_per_sample * samples;
    PlanBuckets(model, ranks, choice);
  }

  StepForecast Run() {
    Load(0, 0);
    while (ended_ < kWarmUp + kMeasured) {
      TRIREME_ASSERT(!events_.empty());
      const Event event = events_.top();
      events_.pop();
      Handle(event);
    }
    const double steps = kMeasured;
    StepForecast forecast;
    forecast.step_s = (end_s_ - begin_s_) / steps;
    forecast.compute_s = forward_s_ + backward_s_ + update_s_;
    forecast.straggler_s = (slow_ - 1) * (forward_s_ + backward_s_);
    forecast.data_s = starved_s_ / steps;
    const double exposed = exposed_s_ / steps;
    const double share = latency_s_ / std::max(latency_s_ + busy_s_, 1e-300);
    forecast.latency_s = exposed * share;
    forecast.bandwidth_s = exposed - forecast.latency_s;
    return forecast;
  }

 private:
  enum class Kind { kLoaded, kBucket, kComputed, kSummed, kUpdated };
  struct Event {
    double time = 0;
    int order = 0;  // of equal times the earlier made
    Kind kind = Kind::kLoaded;
    int part = 0;
    bool operator<(const Event& other) const {  // for a queue whose top is the largest
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  struct Part {
    double ready = 0;  // seconds of backward
    SumSeconds seconds;
  };

  void PlanBuckets(const StepModel& model, int ranks, const StepChoice& choice) {
    if (ranks == 1) return;
    const RankShape shape = ShapeOf(cluster_, ranks);
    const AllReduceAlgorithm* algorithm =
        choice.algorithm == "shared" ? nullptr : &FindAllReduce(choice.algorithm);
    const auto add = [&](double bytes, double share) {
      const AllReduceCost cost =
          algorithm ? algorithm->cost(shape, bytes) : SharedCost(ranks, bytes);
      parts_.push_back({share * backward_s_ * slow_, SecondsFor(cluster_.link, cost)});
      latency_s_ += parts_.back().seconds.latency;
      busy_s_ += parts_.back().seconds.bandwidth + parts_.back().seconds.adding;
    };
    for (const StepModel::Stretch& bucket : CutStretches(model, choice.bucket_bytes)) {
      add(bucket.bytes * model.wire_factor, bucket.share);
    }
    if (model.tail_bytes > 0) add(model.tail_bytes, 1);
  }

  void At(double time, Kind kind, int part = 0) { events_.push({time, made_++, kind, part}); }

  void Load(double now, int step) {
    loading_ = true;
    At(now + load_s_, Kind::kLoaded, step);
  }

  void Begin(double now) {
    waits_ = false;
    if (ended_ == kWarmUp) begin_s_ = idle_since_;
    if (ended_ >= kWarmUp && ended_ < kWarmUp + kMeasured) starved_s_ += now - idle_since_;
    ++taken_;
    if (!loading_ && loaded_ - taken_ < kAhead) Load(now, loaded_);
    const double backward = now + forward_s_ * slow_;
    for (size_t i = 0; i < parts_.size(); ++i) {
      At(backward + parts_[i].ready, Kind::kBucket, int(i));
    }
    At(backward + backward_s_ * slow_, Kind::kComputed);
  }

  void ServeLink(double now) {
    if (serving_ || queue_.empty()) return;
    serving_ = true;
    const SumSeconds& s = parts_[size_t(queue_.front())].seconds;
    // A link that has been idle takes a burst at once, as transport.throttle does.
    link_free_s_ = std::max(link_free_s_, now - cluster_.burst_s) + s.bandwidth;
    At(std::max(now, link_free_s_) + s.latency + s.adding, Kind::kSummed, queue_.front());
    queue_.pop_front();
  }

  void EndIfDone(double now) {
    if (!computed_ || summed_ < parts_.size()) return;
    if (ended_ >= kWarmUp) exposed_s_ += now - computed_at_;
    computed_ = false;
    summed_ = 0;
    At(now + update_s_, Kind::kUpdated);
  }

  void Handle(const Event& event) {
    const double now = event.time;
    switch (event.kind) {
      case Kind::kLoaded:
        loading_ = false;
        ++loaded_;
        if (loaded_ - taken_ < kAhead) Load(now, loaded_);
        if (waits_) Begin(now);
        break;
      case Kind::kBucket:
        queue_.push_back(event.part);
        ServeLink(now);
        break;
      case Kind::kSummed:
        serving_ = false;
        ++summed_;
        ServeLink(now);
        EndIfDone(now);
        break;
      case Kind::kComputed:
        computed_ = true;
        computed_at_ = now;
        EndIfDone(now);
        break;
      case Kind::kUpdated:
        ++ended_;
        end_s_ = idle_since_ = now;
        waits_ = true;
        if (loaded_ > taken_) Begin(now);
        break;
    }
  }

  const StepCluster& cluster_;
  double slow_ = 1, forward_s_ = 0, backward_s_ = 0, update_s_ = 0, load_s_ = 0;
  std::vector<Part> parts_;
  double latency_s_ = 0, busy_s_ = 0;  // of all parts

  std::priority_queue<Event> events_;
  int made_ = 0;
  int loaded_ = 0, taken_ = 0, ended_ = 0;
  bool loading_ = false, waits_ = true, serving_ = false, computed_ = false;
  size_t summed_ = 0;
  std::deque<int> queue_;
  double idle_since_ = 0, computed_at_ = 0, link_free_s_ = 0;
  double begin_s_ = 0, end_s_ = 0, starved_s_ = 0, exposed_s_ = 0;
};

}  // namespace

StepForecast SimulateStep(const StepModel& model, const StepCluster& cluster, int ranks,
                          const StepChoice& choice) {
  TRIREME_ASSERT(ranks >= 1);
  return StepSimulation(model, cluster, ranks, choice).Run();
}

}  // namespace trireme
