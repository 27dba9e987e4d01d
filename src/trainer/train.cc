#include "trainer/train.h"

#include <algorithm>
#include <atomic>

#include "base/assert.h"
#include "base/cores.h"
#include "base/denormals.h"
#include "base/error.h"
#include "base/text.h"
#include "health/rank_watch.h"
#include "health/tracing.h"
#include "launch/transports.h"
#include "record/checkpoint.h"
#include "strategy/make.h"
#include "strategy/step/tags.h"
#include "trainer/batch_rank.h"
#include "trainer/preflight.h"
#include "trainer/server_recorder.h"
#include "trainer/start.h"
#include "trainer/worker.h"
#include "transport/collective/broadcast.h"
#include "transport/forked.h"
#include "transport/tcp/server_world.h"

namespace trireme {
namespace {

int ReceivedSignal(const RunContext& context) {
  return context.notice ? context.notice->received() : context.signals.received();
}

// What a rank places in memory that others reach: its summands, and what all have in common (a
// state, a few numbers of each rank). What is not touched takes no memory.
size_t SharedBytes(const Job& job) {
  int most = 1;
  if (job.recipe.trainer.deterministic) {
    for (int w = 0; w < job.workers(); ++w) most = std::max(most, job.MostShards(w));
  }
  constexpr size_t kPadding = 64;
  constexpr size_t kNumbers = 4096;  // of a rank
  const size_t common =
      job.layout.state * sizeof(float) + (1 + size_t(job.recipe.transport.ranks)) * kNumbers;
  return size_t(most) * (job.layout.summand * sizeof(float) + kPadding) + common;
}

// Of a server that another one leads: it has nothing to keep.
class StopsOnly : public ServerKeeper {
 public:
  explicit StopsOnly(const StopWish& signals) : signals_(signals) {}
  void EpochEnded(const Server&) override {}
  void Look(const Server&) override {}
  bool Stop() override { return signals_.stop(); }
  int signal() const override { return signals_.received(); }

 private:
  const StopWish& signals_;
};

int RunServer(const Job& job, const RunContext& context, const Start& start,
              const StrategySetup& setup, World& world) {
  const auto server = MakeServer(setup, world, start.state.first(job.layout.trained()));
  if (start.resume()) server->Load(*start.resume());
  if (world.rank() != kRecordingRank) {
    StopsOnly keeper(context.signals);
    server->Run(&keeper);
    return context.signals.ExitCode();
  }
  ServerRecorder recorder(job, *context.directory, context.progress, context.signals, start);
  server->Run(&recorder);
  const Ending ending = recorder.Finish(*server);
  context.report({ending, recorder.summary(), {}});
  return ending == Ending::kSignal ? StopWish::ExitCodeOf(recorder.signal()) : 0;
}

// What was measured goes into the config: a repetition needs it.
void WriteChoice(const Job& job, const RunContext& context, const StrategyOptions& options) {
  if (context.show_ranks) {
    context.log.Info("strategy", "algorithm {}, chosen by measured latency and bandwidth",
                     options.algorithm);
  }
  Recipe recipe = job.recipe;
  recipe.strategy = options;
  context.directory->WriteConfig(ConfigText(recipe));
}

// Its queues may wait for others, which must hear of an error before they are drained.
Ending RunOrGiveUp(Worker& worker, Strategy& strategy, const Start& start) {
  try {
    return worker.Run(start);
  } catch (const std::exception& error) {
    strategy.GiveUp(error.what());
    throw;
  }
}

// `backend` goes after the strategy, whose memory is on it.
int RunWorker(const Job& job, const RunContext& context, const Start& start,
              const StrategySetup& setup, World& world, Backend& backend, RankWatch* watch,
              SpanSink* spans, Generator* generator = nullptr) {
  const auto strategy = MakeWorker(setup, world, backend.groups.get());
  std::optional<Recorder> recorder;
  if (strategy->Records()) {
    recorder.emplace(job, *context.directory, context.progress, start.at);
    if (setup.choice.options.algorithm != job.recipe.strategy.algorithm) {
      WriteChoice(job, context, setup.choice.options);
    }
  }
  Worker worker(job, world, backend, *strategy, recorder ? &*recorder : nullptr, context.signals,
                watch, spans, generator);
  if (context.show_ranks && world.rank() == job.strategy.servers && !worker.placed().empty()) {
    context.log.Info("data", "{}", worker.placed());
  }
  const Ending ending = RunOrGiveUp(worker, *strategy, start);
  if (recorder) context.report({ending, recorder->summary(), worker.self_test()});
  return ending == Ending::kSignal ? worker.exit_code() : 0;
}

StrategySetup SetupOf(const Job& job, StrategyCommon* common, const Log& log, int threads) {
  return {.choice = job.strategy,
          .plan = job.plan,
          .layout = job.layout,
          .common = common,
          .optimizer = &job.recipe.optimizer,
          .schedule = &*job.schedule,
          .log = &log,
          .threads = threads,
          .own_samples = job.own_samples,
          .seed = job.recipe.trainer.seed};
}

// What the workers of this process have in common, where they have: made before them.
struct Common {
  std::unique_ptr<StrategyCommon> strategy;
  std::unique_ptr<Generator> generator;
};

// The life of one rank; its exit code.
int RunRank(const Job& job, const RunContext& context, const Start& start, const Common& common,
            World& world) {
  const PinnedThread pinned(job.CpusOf(world.rank()));
  Group& group = world.group();
  if (world.size() > 1) {
    CheckAgreement(group, job);
    if (context.show_ranks) ShowRanks(group, job, context.log);
  }
  const BackendNeeds needs = job.NeedsOf(world.rank());
  StrategySetup setup = SetupOf(job, common.strategy.get(), context.log, needs.threads);
  setup.show_sums = context.show_ranks;
  Backend backend;
  if (!job.strategy.whole) {
    backend = job.make_backend(needs);
    setup.choice.options.algorithm = ResolveAlgorithm(setup, world, backend.groups.get());
  }
  Tracing tracing(job.recipe.record, group);
  std::optional<RankWatch> watch;
  // A rank alone waits for nobody: a long step is no stall.
  if (job.strategy.in_step() && !job.strategy.whole && world.size() > 1)
    watch.emplace(RankWatch::Setup{group, job.recipe.trainer.stall_seconds, context.log});
  bool trained = false;
  try {
    const int status =
        job.strategy.whole
            ? RunBatchRank(job, context, start, world, tracing.buffer())
            : RunWorker(job, context, start, setup, world, backend, watch ? &*watch : nullptr,
                        tracing.buffer(), common.generator.get());
    trained = true;
    tracing.Share();
    return status;
  } catch (const std::exception& error) {
    group.Abort(error.what());  // before the watch goes, which talks to the others
    if (!trained) tracing.Rescue(context.log);
    const std::string verdict = watch ? watch->Verdict(error) : "";
    if (!verdict.empty()) throw Error(verdict);
    throw;
  }
}

Start OpenRun(const Job& job, const RunContext& context);

// The life of one rank of a free pace with a server; its exit code. The server finds out itself
// where it begins: it may have been killed and started again.
int RunFreeRank(const Job& job, const RunContext& context, World& world) {
  const PinnedThread pinned(job.CpusOf(world.rank()));
  try {
    if (world.together() && world.size() > 1) {
      CheckAgreement(world.group(), job);
      if (context.show_ranks) ShowRanks(world.group(), job, context.log);
    }
    StrategySetup setup = SetupOf(job, nullptr, context.log, job.NeedsOf(world.rank()).threads);
    setup.show_sums = context.show_ranks;
    if (world.rank() == 0) return RunServer(job, context, OpenRun(job, context), setup, world);
    Start start;
    start.state = job.initial_state;  // and then the centre's
    if (world.rank() < job.strategy.servers) return RunServer(job, context, start, setup, world);
    Backend backend = job.make_backend(job.NeedsOf(world.rank()));
    return RunWorker(job, context, start, setup, world, backend, nullptr, nullptr);
  } catch (const std::exception& error) {
    if (world.together()) world.group().Abort(error.what());
    throw;
  }
}

int TrainWithServer(const Job& job, const RunContext& context) {
  const std::string fingerprint = FingerprintOf(job);
  const bool other_data = job.strategy.own_data();
  std::atomic<int> refused = 0;  // by two listeners, where there is remote memory
  ServerNeeds needs{.fingerprint = fingerprint, .run_info = RunInfoOf(job), .log = &context.log};
  needs.judge = [&](const std::string& shown) {
    return JudgeFingerprint(fingerprint, shown, other_data);
  };
  needs.refused = [&](const std::string& who, const std::string& why) {
    constexpr int kNamed = 20;
    const int count = ++refused;
    if (count > kNamed) return;
    context.log.Warn("server", "refused {}: {}{}", who, why,
                     count == kNamed ? " (further refusals are not logged)" : "");
  };
  const auto signal = [&] { return ReceivedSignal(context); };
  needs.signal = signal;
  needs.servers = job.strategy.servers;
  needs.groups = job.strategy.GroupOfRank();
  if (job.strategy.inner->shares_memory) needs.group_bytes = SharedBytes(job);
  needs.memory = MemoryRoomOf(job.strategy, job.layout);
  needs.memory_threads = job.NeedsOf(kRecordingRank).threads;
  needs.announce = context.show_ranks;
  // Processes that this program starts have no group to fill a table with.
  const TransportKind* const kind = FindTransport(job.recipe.transport.name);
  const bool apart = kind && kind->run_served && !context.launcher.launched();
  if (context.show_ranks && context.directory && apart) {
    context.log.Info("ranks", "{}", TransportText(job.recipe.transport, true));
  }
  return context.launcher.RunServed(needs, [&](World& world) {
    const int code = RunFreeRank(job, context, world);
    if (context.launcher.launched()) Barrier(world.group(), kTagPreflight);  // see Train
    return code;
  });
}

// What the user may not know to be slow.
void WarnOfCrowds(const Job& job, const Log& log) {
  const auto trains = [&](int rank) { return rank >= job.strategy.servers; };
  const auto here = std::count_if(job.sharing.begin(), job.sharing.end(), trains);
  const int cores = UsableCores(ReadCoreFacts()).count;
  if (here > 1 && here > cores) {
    log.Warn("ranks", "{} workers on {} are slower than {}; lower transport.ranks", here,
             Counted(cores, "core"), cores);
  }
  if (!job.strategy.in_step() || job.strategy.whole) return;
  int idle = 0;
  Work work;
  for (int w = 0; w < job.workers(); ++w) {
    WorkOf(job.plan, 0, w, job.workers(), work);
    const auto empty = [](const Shard& shard) { return shard.size() == 0; };
    idle += std::all_of(work.shards.begin(), work.shards.end(), empty);
  }
  if (idle == 0) return;
  log.Warn("ranks",
           "{} of {} workers get no samples: a batch of {} is cut into {}; raise trainer.batch or "
           "lower transport.ranks",
           idle, job.workers(), job.plan.batch, Counted(job.plan.shards, "shard"));
}

// What the process does that holds the run's directory.
Start OpenRun(const Job& job, const RunContext& context) {
  Start start = FindStart(job, *context.directory, context.log);
  if (start.at.step > job.plan.steps) {
    throw UsageError(
        "{} has already done {} steps, more than the {} asked for; raise --epochs or --steps",
        context.directory->path(), start.at.step, job.plan.steps);
  }
  if (!context.device.empty()) context.log.Info("device", "{}", context.device);
  if (context.start_line) context.directory->AppendStart(*context.start_line);
  context.directory->WriteConfig(ConfigText(job.recipe));
  context.directory->DropMetricsAfter(start.at.step);
  return start;
}

int TrainAsPeers(const Job& job, const RunContext& context) {
  std::optional<Start> own;
  if (context.directory) own.emplace(OpenRun(job, context));
  const auto make_common = job.strategy.inner->common;
  const Common common{
      make_common ? make_common(job.workers(), job.recipe.transport.timeout_s) : nullptr,
      MakeGenerator(job)};
  const auto signal = [&] { return ReceivedSignal(context); };
  const PeerNeeds needs{.shared_bytes = SharedBytes(job), .signal = signal, .log = &context.log};
  return context.launcher.Run(needs, [&](World& world) {
    if (context.launcher.complete()) return RunRank(job, context, *own, common, world);
    const Start shared = ShareStart(world.group(), kRecordingRank, job, own ? &*own : nullptr);
    const int code = RunRank(job, context, shared, common, world);
    // mpirun and srun kill the others when one ends with a code like 143: not before the one that
    // records has written its checkpoint.
    if (context.launcher.launched()) Barrier(world.group(), kTagPreflight);
    return code;
  });
}

}  // namespace

int Train(const Job& job, const RunContext& context) {
  const std::string& boxes = job.recipe.transport.memory;
  if (!boxes.empty() && !job.strategy.in_memory()) {
    throw UsageError(
        "transport.memory = \"{}\": the weights of strategy {} do not lie in remote memory; unset "
        "it, or use hybrid, pgas or strategy.centre = \"memory\"",
        boxes, job.recipe.strategy.name);
  }
  const std::string& way = job.recipe.transport.memory_way;
  if (boxes.empty() && way != "auto") {
    throw UsageError(
        "transport.memory_way = \"{}\" is the way to memory boxes that transport.memory names, and "
        "it names none; set transport.memory=HOST:PORT, or unset it",
        way);
  }
  const auto emulated = Emulated(job.recipe.emulate);
  for (const auto& [key, value] : emulated) {
    context.log.Warn("emulate", "emulate.{} = {}: parts of this run are emulated", key, value);
  }
  if (context.directory && context.show_ranks && emulated.empty()) WarnOfCrowds(job, context.log);
  const DenormalsOff denormals_off;  // for all ranks and their teams: they start below
  TRIREME_ASSERT(context.launcher.holds(kRecordingRank) == (context.directory != nullptr));
  try {
    return job.strategy.leases_work() ? TrainWithServer(job, context) : TrainAsPeers(job, context);
  } catch (const Killed& error) {
    if (!context.directory || !HasCheckpoint(context.directory->checkpoints())) throw;
    throw Error("{}; continue with: trireme train --resume {}", error.what(),
                context.directory->path());
  }
}

int Join(const Job& job, const JoinContext& context) {
  if (job.strategy.servers > 1) {
    throw Error("the run at {} has {} servers (strategy.servers) and accepts only its own clients",
                context.meet, job.strategy.servers);
  }
  if (job.strategy.in_memory()) {
    throw Error(
        "the run at {} keeps its weights in remote memory (strategy.centre = \"memory\") and "
        "accepts only its own clients",
        context.meet);
  }
  if (job.layout.frozen > 0) {
    throw Error(
        "the run at {} has frozen layers (model.freeze), which no server sends, and accepts only "
        "its own clients",
        context.meet);
  }
  const DenormalsOff denormals_off;
  const auto world = JoinServerWorld({.tcp = {.rank = kNoRank,
                                              .size = job.recipe.transport.ranks,
                                              .meet = context.meet,
                                              .secret = context.secret,
                                              .timeout_s = job.recipe.transport.timeout_s},
                                      .fingerprint = FingerprintOf(job)});
  const StrategySetup setup = SetupOf(job, nullptr, context.log, job.threads_per_rank);
  Backend backend = job.make_backend({.threads = job.threads_per_rank});
  const auto strategy = MakeWorker(setup, *world);
  Worker worker(job, *world, backend, *strategy, nullptr, context.signals, nullptr, nullptr);
  Start start;
  start.state = job.initial_state;
  const Ending ending = worker.Run(start);
  return ending == Ending::kSignal ? worker.exit_code() : 0;
}

}  // namespace trireme
