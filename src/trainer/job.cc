#include "trainer/job.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/cores.h"
#include "base/error.h"
#include "data/balance.h"
#include "data/sources.h"
#include "graph/layout.h"
#include "graph/models/losses.h"
#include "graph/models/models.h"
#include "graph/models/rates.h"
#include "health/emulate.h"
#include "launch/transports.h"
#include "strategy/step/split.h"

namespace trireme {
namespace {

// Samples of a portion: many portions, so that a fast worker can take more of them, of a size that
// an engine is fast with.
int64_t PortionOf(const OptimizerOptions& options, int64_t samples) {
  constexpr int64_t kPortions = 128, kLeast = 16, kMost = 256;
  const int64_t size =
      options.portion ? options.portion : std::clamp(samples / kPortions, kLeast, kMost);
  return std::min(size, samples);
}

// Of one function, which a method that looks along lines must meet again.
void RefuseChanges(const Recipe& recipe) {
  const auto refuse = [&](const char* key, const std::string& value, const char* none) {
    throw UsageError(
        "{} = {}: optimizer {} minimises one function, and this makes it another one in every "
        "epoch; set {}={}",
        key, value, recipe.optimizer.name, key, none);
  };
  if (recipe.model.dropout > 0) {
    refuse("model.dropout", fmt::format("{:g}", recipe.model.dropout), "0");
  }
  if (recipe.data.augment != DataOptions{}.augment) {
    refuse("data.augment", recipe.data.augment, "none");
  }
}

// A server hands out what is trained; the rest each worker has from the beginning.
void RefuseFrozen(const Recipe& recipe, const StrategyChoice& strategy) {
  if (recipe.model.freeze.empty()) return;
  if (strategy.leases_work() && strategy.inner->shares_memory) {
    throw UsageError(
        "model.freeze: the groups of strategy {} share weights that come from a centre, which "
        "holds only what is trained; use another strategy (easgd, hybrid, allreduce), or unset it",
        recipe.strategy.name);
  }
  if (strategy.whole) {
    throw UsageError(
        "model.freeze: optimizer {} moves all weights at once; use another optimizer, or unset it",
        recipe.optimizer.name);
  }
}

// Whose workers hold different weights between two steps, or have no steps.
void RefuseAverage(const Recipe& recipe, const StrategyChoice& strategy) {
  if (recipe.trainer.ema <= 0) return;
  if (strategy.whole) {
    throw UsageError(
        "trainer.ema = {:g} averages weights over many short steps, and optimizer {} takes few "
        "long ones; set it to 0, or use another optimizer",
        recipe.trainer.ema, recipe.optimizer.name);
  }
  if (strategy.in_step() && !strategy.local_steps()) return;
  throw UsageError(
      "trainer.ema = {:g} averages the weights that all workers hold after a step, and those of "
      "strategy {} differ; set it to 0, or use allreduce, sync-ps or bsp",
      recipe.trainer.ema, recipe.strategy.name);
}

// Falls where evaluations get no better: those who update must hear of each.
void RefusePlateau(const Recipe& recipe, const Schedule& schedule, const StrategyChoice& strategy) {
  if (!schedule.waits()) return;
  if (!strategy.in_step() || strategy.whole) {
    throw UsageError(
        "optimizer.schedule = \"{}\" waits for evaluations, after which all workers go on with the "
        "same rate, and {} has no such moment; use cosine, or strategy allreduce, sync-ps or "
        "local-sgd with another optimizer than lbfgs",
        recipe.optimizer.schedule,
        strategy.whole ? "optimizer " + recipe.optimizer.name : "strategy " + recipe.strategy.name);
  }
  if (recipe.trainer.evaluate_every > 0) return;
  throw UsageError(
      "optimizer.schedule = \"{}\" waits for evaluations, and trainer.evaluate_every = 0 has none "
      "before the end; set it to 1",
      recipe.optimizer.schedule);
}

constexpr int kMostShards = 1 << 20;
constexpr double kMostSteps = 1e15;  // every integer up to here is a double

int64_t CountSteps(const TrainerOptions& options, int64_t steps_per_epoch) {
  if (options.steps > 0) return options.steps;
  const double steps = std::ceil(options.epochs * double(steps_per_epoch));
  if (steps > kMostSteps) {
    throw UsageError("trainer.epochs = {:g} makes {:g} steps, more than can be counted",
                     options.epochs, steps);
  }
  return std::max<int64_t>(1, int64_t(steps));
}

}  // namespace

int64_t GlobalBatch(const TrainerOptions& options, int workers, int64_t samples) {
  if (options.batch_per_worker > 0) return std::min(options.batch_per_worker * workers, samples);
  return options.batch.is_word() ? samples : std::min(options.batch.number, samples);
}

MakeBackend BackendOf(const Recipe& recipe, bool trains) {
  const DeviceChoice device = FindDevice(recipe.trainer.device);
  if (trains) RequireDevice(device);
  const EngineKind& kind = *device.kind;
  const Precision precision = ResolvePrecision(kind, recipe.trainer.precision);
  const bool here = trains || kind.Missing(device.number).empty();
  EngineOptions options = recipe.engine;
  options.measure = options.measure && !recipe.trainer.deterministic;
  return [&kind, number = device.number, precision, here, options](const BackendNeeds& given) {
    if (!kind.host_memory && !(given.trains && here)) {
      return HostEngine().make(Precision::kF32, options, given);
    }
    BackendNeeds needs = given;
    needs.number = number;
    return kind.make(precision, options, needs);
  };
}

DeviceChoice Job::DeviceOf(int rank) const {
  const DeviceChoice device = FindDevice(recipe.trainer.device);
  return rank < strategy.servers && !device.kind->host_memory ? DeviceChoice{&HostEngine()}
                                                              : device;
}

BackendNeeds Job::NeedsOf(int rank) const {
  const auto at = std::ranges::find(trainers, rank);
  const bool as_all = DeviceOf(rank).kind == FindDevice(recipe.trainer.device).kind;
  return {.threads = as_all ? threads_per_rank : cores_per_rank,
          .place = at == trainers.end() ? 0 : int(at - trainers.begin()),
          .trains = rank >= strategy.servers};
}

std::vector<int> Job::CpusOf(int rank) const {
  const auto at = std::find(sharing.begin(), sharing.end(), rank);
  if (!recipe.trainer.pin || recipe.transport.ranks == 1 || at == sharing.end()) return {};
  return ShareOf(cpus, int(at - sharing.begin()), int(sharing.size()));
}

size_t Job::bucket_floats() const { return size_t(recipe.strategy.bucket_mb * 1e6 / 4); }

int Job::MostShards(int worker) const {
  if (!strategy.in_step() || strategy.whole) return 1;
  if (strategy.balanced && worker >= 0) return trireme::MostShards(plan.shards, workers());
  if (strategy.inner->one_source) return MostEqualShards(plan.shards, workers());
  return ShardsOf(plan, worker, workers());
}

namespace {

// Samples at once of a worker whose pace is free: a shard, a lease, or its part of one.
int FreeCapacity(const Job& job) {
  const Plan& plan = job.plan;
  if (job.strategy.clocked()) return int((plan.batch + plan.shards - 1) / plan.shards);
  const int clients = job.strategy.leases_work() ? job.strategy.clients() : job.workers();
  const int64_t lease = (plan.batch + clients - 1) / clients, least = job.workers() / clients;
  return int((lease + least - 1) / least);
}

}  // namespace

ModelCard ModelCardOf(const Job& job) {
  std::vector<int64_t> samples = {job.data.train->size(), job.data.test->size()};
  if (job.data.validation) samples.push_back(job.data.validation->size());
  return {job.data.shape,   job.data.classes, job.normalizer,         std::move(samples),
          job.data.columns, job.data.codes,   job.recipe.model.layers};
}

void AdoptPlan(Job& job, const Plan& plan) {
  const int64_t own = job.data.train->size();
  if (own != plan.samples) job.own_samples = own;
  job.plan = plan;
  job.shard_capacity = FreeCapacity(job);
  if (own < job.shard_capacity) {
    throw UsageError("{} has {} samples, fewer than the {} that the server leases at a time",
                     job.recipe.data.source, own, job.shard_capacity);
  }
  job.schedule.emplace(job.recipe.optimizer, plan.steps_per_epoch(), plan.steps, plan.batch);
}

namespace {

// Its shards are for the caller.
Plan PlanOf(const TrainerOptions& trainer, const StrategyChoice& strategy, int64_t samples) {
  const int64_t batch =
      strategy.whole ? samples : GlobalBatch(trainer, strategy.workers(), samples);
  Plan plan{.samples = samples, .batch = batch};
  plan.steps = CountSteps(trainer, plan.steps_per_epoch());
  return plan;
}

struct Opened {
  DataSet data;
  Plan plan;
  std::string chosen;  // in words
};

// What only classes have.
void RefuseForNumbers(const Recipe& recipe) {
  if (recipe.data.task == NameOf(Task::kClassification)) return;
  if (recipe.trainer.target_accuracy > 0) {
    throw UsageError(
        "trainer.target_accuracy = {:g}: the label is a number, and there is no accuracy; set it "
        "to 0",
        recipe.trainer.target_accuracy);
  }
  if (recipe.data.balance) {
    throw UsageError("data.balance weighs classes, but the label is a number; set it to false");
  }
}

// Opens the data, unless they are given, and fills what the recipe leaves open.
Opened OpenFor(OpenKeys open, const StrategyChoice& strategy, Recipe& recipe,
               std::optional<DataSet> given = {}) {
  Opened opened;
  const std::string size = FillOpenSize(open, !recipe.trainer.init.empty(), recipe.data);
  opened.data = given ? DivideData(std::move(*given), recipe.data, recipe.trainer.seed)
                      : OpenData(recipe.data, recipe.trainer.seed);
  const DataSet& data = opened.data;
  recipe.data.task = NameOf(data.task);
  if (data.task == Task::kClassification && data.classes.size() < 2) {
    throw UsageError("a classifier needs at least 2 classes, got {}", data.classes.size());
  }
  const std::string table = FillOpenTable(open, data, recipe);
  const std::string pictures = FillOpenPictures(open, data, recipe);
  opened.plan = PlanOf(recipe.trainer, strategy, data.train->size());
  const std::string rest = FillOpenKeys(open, data, opened.plan, recipe);
  recipe.model.loss = LossFor(recipe.model.loss, data.outputs()).name;
  RefuseForNumbers(recipe);
  for (const std::string& part : {size, table, pictures, rest}) {
    if (!part.empty()) opened.chosen += (opened.chosen.empty() ? "" : ", ") + part;
  }
  return opened;
}

}  // namespace

StrategyChoice ChooseStrategy(const Recipe& recipe) {
  const TransportKind* transport = FindTransport(recipe.transport.name);  // null: not chosen yet
  const std::string& device = recipe.trainer.device;  // auto yields to what needs the host's memory
  return ResolveStrategy(recipe.strategy, {.ranks = recipe.transport.ranks,
                                           .deterministic = recipe.trainer.deterministic,
                                           .one_process = !transport || transport->one_process,
                                           .shared_memory = !transport || transport->shares_memory,
                                           .host_memory = device == kAutoDevice ||
                                                          FindDevice(device).kind->host_memory,
                                           .optimizer = &recipe.optimizer});
}

namespace {

// Why strategy and precision cannot be on the recipe's device; empty: they can.
std::string WhyNotOnDevice(const Recipe& recipe) {
  try {
    ChooseStrategy(recipe);
    ResolvePrecision(*FindDevice(recipe.trainer.device).kind, recipe.trainer.precision);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

std::string SettleDevice(Recipe& recipe, bool given) {
  if (recipe.trainer.device != kAutoDevice) return "";
  if (!given && recipe.trainer.deterministic) {  // the bits of a card are those of its kind alone
    recipe.trainer.device = HostEngine().name;
    return "";
  }
  std::string why;
  const DeviceChoice choice = AutoDevice(why, given);
  recipe.trainer.device = choice.Text();
  if (choice.kind->host_memory) return why;
  why = WhyNotOnDevice(recipe);
  if (why.empty()) return "";
  // What only the processor can do stays there; what nothing can do is refused later, when the
  // number of ranks is known.
  Recipe on_host = recipe;
  on_host.trainer.device = HostEngine().name;
  if (!WhyNotOnDevice(on_host).empty()) return "";
  recipe = on_host;
  return why;
}

std::string CompleteRecipe(const OpenKeys& open, Recipe& recipe) {
  if (!open.no_recipe) return "";
  return OpenFor(open, ChooseStrategy(recipe), recipe).chosen;
}

Job PrepareJob(const Recipe& given, MakeBackend make_backend, const Neighbours& neighbours,
               bool weights, const OpenKeys& open, std::optional<DataSet> samples) {
  Job job;
  job.recipe = given;
  const Recipe& recipe = job.recipe;
  job.make_backend = std::move(make_backend);
  Pretence(recipe.emulate, 0, recipe.transport.ranks);  // refuses what makes no sense
  TrainerOptions& trainer = job.recipe.trainer;
  job.recipe.optimizer.clip = trainer.clip;
  trainer.device = FindDevice(trainer.device).Text();  // what auto stands for is written down
  job.strategy = ChooseStrategy(recipe);
  const Precision precision = ResolvePrecision(*FindDevice(trainer.device).kind, trainer.precision);
  trainer.precision = NameOf(precision);
  job.recipe.optimizer.scales_loss = precision == Precision::kFp16;
  if (trainer.shards && trainer.accumulate > 1 && !job.strategy.whole) {
    throw UsageError(
        "trainer.shards and trainer.accumulate both say how a batch is cut; set only one");
  }

  RefuseFrozen(recipe, job.strategy);
  RefuseAverage(recipe, job.strategy);
  if (job.strategy.whole) {
    RefuseChanges(recipe);
    if (precision == Precision::kFp16) {
      throw UsageError(
          "trainer.precision = \"fp16\": optimizer {} compares losses, whose gradients cannot be "
          "skipped; use f32, tf32 or bf16",
          recipe.optimizer.name);
    }
  }

  Opened opened = OpenFor(open, job.strategy, job.recipe, std::move(samples));
  job.data = std::move(opened.data);
  job.chosen = std::move(opened.chosen);
  Plan& plan = job.plan;
  plan = opened.plan;
  job.normalizer = MakeNormalizer(*job.data.train, recipe.data);
  if (!job.classifies()) job.normalizer.SetTarget(FitTarget(*job.data.train));
  if (recipe.data.balance) {
    job.class_weights = BalancedWeights(*job.data.train, job.data.outputs());
  }
  const SampleShape shape = job.data.shape;
  job.graph =
      BuildModel(recipe.model, {shape.height, shape.width, shape.channels}, job.data.outputs());
  job.layout = LayOut(job.graph);
  job.layout.rates = RatesOf(job.graph, recipe.optimizer.rates);
  if (weights) job.initial_state = InitialState(job.graph, job.layout, trainer.seed);

  if (!trainer.shards && !job.strategy.whole) trainer.shards = job.workers() * trainer.accumulate;
  if (trainer.shards > kMostShards) {
    throw UsageError(
        "{} shards per step are too many (trainer.shards, trainer.accumulate); at most {} are "
        "allowed",
        trainer.shards, kMostShards);
  }
  if (job.strategy.whole) {
    const int64_t portion = PortionOf(recipe.optimizer, plan.samples);
    const int64_t portions = (plan.samples + portion - 1) / portion;
    if (portions > kMostShards) {
      throw UsageError("optimizer.portion = {} makes {} portions; at most {} are allowed", portion,
                       portions, kMostShards);
    }
    plan.shards = int(portions);
  } else {
    trainer.accumulate = 1;
    plan.shards = trainer.shards;
  }
  job.shard_capacity = int((plan.batch + plan.shards - 1) / plan.shards);
  if (!job.strategy.in_step()) job.shard_capacity = FreeCapacity(job);

  CheckPlan(job.strategy, plan);
  job.schedule.emplace(recipe.optimizer, plan.steps_per_epoch(), plan.steps, plan.batch);
  RefusePlateau(recipe, *job.schedule, job.strategy);
  job.cpus = OrderByCore(ReadCoreFacts().affinity);
  job.sharing = neighbours.ranks;
  for (int r = 0; neighbours.ranks.empty() && r < recipe.transport.ranks; ++r) {
    job.sharing.push_back(r);
  }
  job.trainers = neighbours.host.empty() ? job.sharing : neighbours.host;
  std::erase_if(job.trainers, [&](int rank) { return rank < job.strategy.servers; });
  // Servers of a free pace only add, and who leads an optimizer only asks: a core of their own
  // would be idle.
  std::erase_if(job.sharing, [&](int rank) {
    const bool computes = job.strategy.in_step() && !job.strategy.whole;
    return !computes && rank < job.strategy.servers;
  });
  const int sharing = std::max(1, int(job.sharing.size()));
  // A card leaves the cores to the loader.
  const bool elsewhere = !FindDevice(trainer.device).kind->host_memory && trainer.threads.is_word();
  job.threads_per_rank = elsewhere ? 1 : CountThreads(trainer, sharing, neighbours.process_each);
  job.cores_per_rank = ThreadsOfEach(ReadCoreFacts(), sharing, neighbours.process_each);
  return job;
}

}  // namespace trireme
