#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "transport/collective/link_model.h"

namespace trireme {

// Seconds of a worker's step that depend on its samples.
struct StepSeconds {
  double fixed = 0, per_sample = 0;
  double At(double samples) const { return fixed + per_sample * samples; }
};

// A step of strategy allreduce, as one worker sees it.
struct StepModel {
  StepSeconds forward, backward;
  double update_s = 0;             // and what else happens once in a step
  double fetch_s_per_sample = 0;   // where a worker fetches its samples itself
  double loader_s_per_sample = 0;  // of threads that fetch ahead; 0: nobody ever waits for them
  double batch = 1;                // samples of a step: of all workers, or of each
  bool batch_per_worker = false;
  double samples = 1;  // of an epoch

  // Gradients in the order in which backward finishes them; a bucket may end behind each stretch.
  struct Stretch {
    double bytes = 0;
    double share = 0;  // of backward, until it is final
  };
  std::vector<Stretch> stretches;
  double tail_bytes = 0;   // statistics and loss: final at the end
  double wire_factor = 1;  // 0.5: gradients travel as bf16

  double SamplesPerWorker(int ranks) const;  // of the one that has most
  double StepsPerEpoch(int ranks) const;
};

// Where it runs.
struct StepCluster {
  LinkModel link;
  double burst_s = 0;  // of traffic that an idle link takes at once (transport.throttle does)
  int ranks_per_node = 1;
  double jitter = 0;  // relative deviation of a worker's computing time, from step to step
  bool shared_memory = false;
};

// How gradients are summed. "shared": where they lie, in memory that all ranks address; the others
// are transport/collective/all_reduce.h's.
struct StepChoice {
  std::string algorithm = "ring";
  double bucket_bytes = 4e6;
};

struct StepForecast {
  double step_s = 0;
  // What it consists of.
  double compute_s = 0;    // forward, backward, update of a usual worker
  double data_s = 0;       // waiting for samples
  double straggler_s = 0;  // waiting for the slowest
  double latency_s = 0;    // exposed communication: messages one after another,
  double bandwidth_s = 0;  // and bytes (and additions)

  std::string_view Bound() const;  // the largest of them, in words
};

// Several steps, event by event: samples that come, forward, buckets that become final one after
// the other, a link that sums them in this order, the update. All ranks are alike; the slowest of
// them sets the pace. The time of a step once it is regular.
StepForecast SimulateStep(const StepModel& model, const StepCluster& cluster, int ranks,
                          const StepChoice& choice);

// The buckets that strategy.bucket_mb makes of the stretches, without the tail.
std::vector<StepModel::Stretch> CutStretches(const StepModel& model, double bucket_bytes);

// Nodes of so many ranks each, the last one with what is left.
RankShape ShapeOf(const StepCluster& cluster, int ranks);

// How many deviations the largest of n normal numbers lies above their mean, expected.
double ExpectedMaximum(int n);

// What strategy.algorithm = "auto" takes there: the least estimate for the largest bucket.
std::string AutomaticAlgorithm(const StepModel& model, const StepCluster& cluster, int ranks,
                               double bucket_bytes);

// The algorithm and bucket size with the shortest step.
struct BestChoice {
  StepChoice choice;
  StepForecast forecast;
};
BestChoice FindBestChoice(const StepModel& model, const StepCluster& cluster, int ranks);

}  // namespace trireme
