#pragma once
#include <functional>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/signals.h"
#include "data/normalizer.h"
#include "data/source.h"
#include "flat/layout.h"
#include "graph/engine.h"
#include "graph/graph.h"
#include "optimizer/schedule.h"
#include "strategy/work.h"
#include "trainer/recipe.h"

namespace trireme {

// Makes the engine of one rank. Tests hand in their own.
using MakeEngine = std::function<std::unique_ptr<Engine>(int threads)>;

// What all ranks of a run share, resolved once before they start and then only read: the data, the
// graph, how samples are cut into steps, where to begin.
struct Job {
  Recipe recipe;  // resolved: batch, shards and threads are numbers
  DataSet data;
  Normalizer normalizer = Normalizer::Identity(1);
  Graph graph;
  Layout layout;
  Plan plan;
  Schedule schedule;
  bool in_step = true;     // of the strategy
  int servers = 0;         // ranks that do not train
  int shard_capacity = 0;  // samples of a shard, at most
  int threads_per_rank = 1;
  std::vector<float> initial_state;
  MakeEngine make_engine;

  int workers() const { return recipe.transport.ranks - servers; }
  int64_t epochs() const {  // begun ones
    return (plan.steps + plan.steps_per_epoch() - 1) / plan.steps_per_epoch();
  }
  int MostShards(int worker) const;  // of one worker in one step
  size_t bucket_floats() const;
};

// Opens the data, builds the graph and resolves what the recipe leaves open. Throws UsageError
// where the recipe contradicts itself or the data.
Job PrepareJob(const Recipe& recipe, MakeEngine make_engine);

// The engine that trainer.device names.
MakeEngine EngineFor(const TrainerOptions& options);

}  // namespace trireme
