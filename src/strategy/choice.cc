#include "strategy/choice.h"

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"
#include "optimizer/rules.h"
#include "strategy/presets.h"
#include "strategy/refusals.h"

namespace trireme {
namespace {

template <class Kind>
struct Word {
  const char* word;
  Kind kind;
};

constexpr Word<CentreKind> kCentres[] = {{"none", CentreKind::kNone},
                                         {"group", CentreKind::kGroup},
                                         {"server", CentreKind::kServer},
                                         {"memory", CentreKind::kMemory}};
constexpr Word<PaceKind> kPaces[] = {{"in-step", PaceKind::kInStep},
                                     {"free", PaceKind::kFree},
                                     {"clock", PaceKind::kClock},
                                     {"round", PaceKind::kRound}};
constexpr Word<StaleKind> kStales[] = {
    {"wait", StaleKind::kWait}, {"scale", StaleKind::kScale}, {"drop", StaleKind::kDrop}};

constexpr Word<Overlap> kOverlaps[] = {{"none", {.reduce = false, .broadcast = false}},
                                       {"reduce", {.reduce = true, .broadcast = false}},
                                       {"broadcast", {.reduce = false, .broadcast = true}},
                                       {"both", {.reduce = true, .broadcast = true}}};
constexpr const char* kChain = "chain";
constexpr const char* kStar = "star";
constexpr const char* kAuto = "auto";

template <class Rows>
std::vector<std::string> WordsOf(const Rows& rows) {
  std::vector<std::string> words{kAuto};
  for (const auto& row : rows) words.push_back(row.word);
  return words;
}

template <class Rows>
auto KindOf(const Rows& rows, std::string_view word) {
  const auto at = std::ranges::find(rows, word, [](const auto& row) { return row.word; });
  TRIREME_ASSERT(at != std::end(rows));
  return at->kind;
}

// What the recipe says, else what the preset has.
std::string_view Or(const std::string& given, std::string_view preset) {
  return given == kAuto ? preset : std::string_view(given);
}

constexpr int kGroups = 2;  // where the recipe names no number

// Follows from the inner choice.
PaceKind PaceWithoutServer(const StrategyChoice& c) {
  return c.local_steps() || c.inner->in_step ? PaceKind::kInStep : PaceKind::kFree;
}

int ServersOf(const StrategyChoice& c) {
  return c.leases_work() ? c.options.servers : c.inner->servers;
}

}  // namespace

std::vector<std::string> CentreWords() { return WordsOf(kCentres); }
std::vector<std::string> PaceWords() { return WordsOf(kPaces); }
std::vector<std::string> StaleWords() { return WordsOf(kStales); }
std::vector<std::string> OverlapWords() {
  std::vector<std::string> words;
  for (const auto& row : kOverlaps) words.push_back(row.word);
  return words;
}
std::vector<std::string> RouteWords() { return {kChain, kStar}; }

StrategyChoice ResolveStrategy(const StrategyOptions& options, const StrategyScene& scene) {
  const StrategyPreset& preset = FindPreset(options.name);
  StrategyChoice c{.options = options, .ranks = scene.ranks, .deterministic = scene.deterministic};
  c.centre = KindOf(kCentres, Or(options.centre, preset.centre));
  const auto usual_in = [&](const char* memory, const char* elsewhere) {
    return c.in_memory() && memory ? memory : elsewhere;
  };
  c.inner = &FindInner(Or(options.inner, usual_in(preset.memory_inner, preset.inner)));
  c.merge = &FindMerge(Or(options.merge, usual_in(preset.memory_merge, preset.merge)));
  if (c.local_steps() && !c.merge->averages && options.merge == kAuto) c.merge = &AverageMerge();
  c.pace = KindOf(kPaces, Or(options.pace, preset.pace));
  if (!c.leases_work() && options.pace == kAuto) c.pace = PaceWithoutServer(c);
  c.whole = scene.optimizer && FindRule(scene.optimizer->name).whole;
  c.servers = c.whole ? std::min(1, c.ranks - 1) : ServersOf(c);
  c.star = options.route == kStar;
  c.overlap = KindOf(kOverlaps, options.overlap);
  c.balanced = options.balance == kByRate;
  if (c.inner->groups && c.centre != CentreKind::kNone) {
    c.groups = options.groups > 0 ? options.groups : kGroups;
  }
  c.period = options.period >= 0 ? options.period : preset.period;
  c.push = options.push > 0 ? options.push : preset.push;
  c.fetch = options.fetch > 0 ? options.fetch : preset.fetch;
  c.staleness = options.staleness >= 0 ? options.staleness : preset.staleness;
  if (c.clocked() && c.staleness < 0) c.staleness = 0;
  const StaleKind usual = c.pace == PaceKind::kFree ? c.merge->stale : StaleKind::kWait;
  c.stale = options.stale == kAuto ? usual : KindOf(kStales, options.stale);
  if (c.waits() && options.fetch == 0) c.fetch = c.push;
  // Merges of weights at a free pace have no other way to the server's.
  c.broadcasts = c.leases_work() && c.pace == PaceKind::kFree && !c.waits() &&
                 (c.merge->gradients ? preset.broadcasts : c.merge->takes_weights);
  RefuseImpossible(c, preset, scene);
  return c;
}

int RanksFor(const StrategyOptions& options, int workers) {
  for (int ranks = workers; ranks <= 2 * workers + 64; ++ranks) {
    try {
      if (ResolveStrategy(options, {.ranks = ranks}).workers() == workers) return ranks;
    } catch (const UsageError&) {  // too few for its servers
    }
  }
  throw UsageError("strategy {} cannot have {} workers", options.name, workers);
}

int StrategyChoice::FirstOf(int group) const { return int(int64_t(workers()) * group / groups); }

int StrategyChoice::GroupOf(int worker) const {
  for (int g = groups - 1; g > 0; --g) {
    if (worker >= FirstOf(g)) return g;
  }
  return 0;
}

// At a free pace a client's epoch is its share of the samples; no push holds more than that.
int StrategyChoice::steps_between_meetings(int64_t share) const {
  const int64_t least = std::max<int64_t>(1, share);
  const int steps = merge->gradients ? push : period;
  if (!open_epochs()) return steps;
  return int(steps == 0 ? least : std::min<int64_t>(steps, least));
}

int StrategyChoice::LeaderOf(int client) const { return led() ? FirstOf(client) : client; }

std::vector<int> StrategyChoice::GroupOfRank() const {
  if (!groups) return {};
  std::vector<int> of(size_t(ranks), -1);
  for (int w = 0; w < workers(); ++w) of[size_t(servers + w)] = GroupOf(w);
  return of;
}

void CheckPlan(const StrategyChoice& choice, const Plan& plan) {
  if (choice.balanced && plan.shards <= choice.workers()) {
    throw UsageError(
        "strategy.balance = \"rate\" gives a fast worker some of a slow worker's shards, but this "
        "run has {} for {}; set trainer.shards to several per worker, {} for example",
        Counted(plan.shards, "shard"), Counted(choice.workers(), "worker"), 8 * choice.workers());
  }
  if (!choice.options.sync_batch_norm) return;
  const int64_t rest = plan.samples % plan.batch;
  if (plan.shards == choice.workers() && (rest == 0 || rest >= choice.workers())) return;
  throw UsageError(
      "strategy.sync_batch_norm needs one shard per worker with at least one sample each; this run "
      "has {} shards, {} workers and {} samples in the last step of an epoch",
      plan.shards, choice.workers(), rest ? rest : plan.batch);
}

std::string WhyNoSelfTest(const StrategyChoice& choice) {
  if (choice.whole) {
    return "--self-test cannot check this optimizer: it has no steps of a batch to compare";
  }
  if (choice.in_step() && !choice.local_steps() && choice.merge->gradients &&
      !choice.options.sync_batch_norm) {
    return "";
  }
  return fmt::format(
      "--self-test cannot check strategy {}: what it adds up is not what one rank computes alone",
      choice.options.name);
}

}  // namespace trireme
