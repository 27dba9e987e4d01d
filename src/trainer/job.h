#pragma once
#include <optional>
#include <string>

#include "data/normalizer.h"
#include "data/source.h"
#include "engine/engines.h"
#include "flat/layout.h"
#include "graph/graph.h"
#include "launch/launcher.h"
#include "model/model_card.h"
#include "optimizer/schedule.h"
#include "recipe/recipe.h"
#include "strategy/choice.h"
#include "strategy/step/work.h"
#include "trainer/defaults.h"

namespace trireme {

// What all ranks of a run share, resolved once before they start and then only read: the data, the
// graph, how samples are cut into steps, where to begin.
struct Job {
  Recipe recipe;  // resolved: batch, shards and threads are numbers
  DataSet data;
  Normalizer normalizer = Normalizer::Identity(1);
  Graph graph;
  Layout layout;
  std::vector<float> class_weights;  // data.balance; empty: all are 1
  std::string chosen;                // in words, of keys that nobody gave; empty: none
  Plan plan;
  std::optional<Schedule> schedule;  // always there after PrepareJob
  StrategyChoice strategy;
  int64_t own_samples = 0;    // not 0: the data are this client's own, the plan the server's
  int shard_capacity = 0;     // samples of a shard, at most
  int threads_per_rank = 1;   // that compute
  int cores_per_rank = 1;     // its share of the processors, for computing and for its loader
  std::vector<int> cpus;      // of this process; those of a core stand together
  std::vector<int> sharing;   // ranks that compute on them
  std::vector<int> trainers;  // ranks of this machine that train: a place for each
  std::vector<float> initial_state;
  bool given_weights = false;   // --init: a checkpoint keeps them before the first step
  bool only_self_test = false;  // no step
  MakeBackend make_backend;

  int workers() const { return strategy.workers(); }
  bool classifies() const { return data.task == Task::kClassification; }
  int64_t epochs() const {  // begun ones
    return (plan.steps + plan.steps_per_epoch() - 1) / plan.steps_per_epoch();
  }
  int MostShards(int worker) const;         // of one worker in one step
  std::vector<int> CpusOf(int rank) const;  // to pin it to; empty: nowhere
  DeviceChoice DeviceOf(int rank) const;    // a server takes none that is not the host's
  BackendNeeds NeedsOf(int rank) const;
  size_t bucket_floats() const;
};

// Opens the data, builds the graph and resolves what the recipe leaves to it, and the keys that are
// open. Throws UsageError where the recipe contradicts itself or the data. Without `weights`, for a
// plan, there is no initial state: it may be more than the machine holds. With `samples` these are
// divided, and nothing is opened (data/given.h).
Job PrepareJob(const Recipe& recipe, MakeBackend make_backend, const Neighbours& neighbours = {},
               bool weights = true, const OpenKeys& open = {}, std::optional<DataSet> samples = {});

// The recipe's strategy for its ranks. UsageError where it cannot run so.
StrategyChoice ChooseStrategy(const Recipe& recipe);

// Samples of a step, of so many in an epoch.
int64_t GlobalBatch(const TrainerOptions& options, int workers, int64_t samples);

// Fills the open keys as PrepareJob would, and nothing else. What was chosen, in words.
std::string CompleteRecipe(const OpenKeys& open, Recipe& recipe);

// Replaces trainer.device = "auto" by what it stands for here. `given`: somebody has written it,
// otherwise it is the key's default, which leaves what is deterministic to the processor. Why it is
// no card, in words; empty: it is one, or nobody wants to know.
std::string SettleDevice(Recipe& recipe, bool given);

// What a checkpoint of it remembers of its data.
ModelCard ModelCardOf(const Job& job);

// For a client of a server whose plan is another one than its own data would make.
void AdoptPlan(Job& job, const Plan& plan);

// The backend that trainer.device, trainer.precision and section [engine] name. Throws Error where
// this machine lacks the device. A server's rank takes none that is not the host's; `trains`: this
// process has other ranks too, else it needs no such device.
MakeBackend BackendOf(const Recipe& recipe, bool trains = true);

}  // namespace trireme
