#include "trainer/batch_rank.h"

#include "base/error.h"
#include "strategy/batch/alone.h"
#include "strategy/batch/batch_worker.h"
#include "strategy/batch/leader.h"
#include "strategy/step/tags.h"
#include "trainer/batch_train.h"
#include "trainer/portions.h"
#include "transport/collective/broadcast.h"

namespace trireme {
namespace {

int VectorsOf(const Job& job) { return Lbfgs::VectorsFor(job.recipe.optimizer.history); }

// One rank that does it all.
class OwnRank : public BatchTrainer::Ranks {
 public:
  OwnRank(const Job& job, Engine& engine, SpanSink* spans)
      : rank_(0),
        portions_(job, engine, rank_, spans),
        objective_(portions_, job.layout, job.plan.shards, VectorsOf(job),
                   job.recipe.optimizer.weight_decay),
        examiner_(job, engine, portions_.queue()) {}

  BatchObjective& objective() override { return objective_; }
  Findings Examine(int64_t step) override {
    return examiner_.Run(portions_.state(), 0, 1, nullptr, {}, step);
  }
  EvaluationDetails Details() override { return examiner_.Details(); }
  void Pause() override { portions_.Pause(); }
  RankRecord spent() const override {
    return {.rank = rank_, .times = portions_.times(), .loader = portions_.loader()};
  }
  const Device* device() const override { return &portions_.device(); }

 private:
  const int rank_;
  Portions portions_;
  BatchAlone objective_;
  Examiner examiner_;
};

// What all ranks do together (BatchObjective::Meet).
enum Meeting : int64_t { kExamine, kDetails };

// The first of several ranks: says what to do, and records.
class LedRanks : public BatchTrainer::Ranks {
 public:
  LedRanks(const Job& job, Engine& engine, World& world)
      : job_(job),
        group_(world.group()),
        queue_(engine.device().NewQueue()),
        state_(engine.device(), job.layout.state),
        leader_(world, job.layout, job.plan.shards, job.recipe.optimizer.backups,
                job.recipe.trainer.stall_seconds),
        examiner_(job, engine, *queue_) {}

  BatchObjective& objective() override { return leader_; }
  Findings Examine(int64_t step) override {
    leader_.Meet(kExamine);
    return examiner_.Run(state_, -1, job_.workers(), &group_, {}, step);
  }
  EvaluationDetails Details() override {
    leader_.Meet(kDetails);
    return examiner_.Details(&group_);
  }
  RankRecord spent() const override {
    const Traffic traffic = leader_.traffic();
    return {.rank = 0,
            .times = {.communication = traffic.communication_s},
            .bytes_sent = int64_t(traffic.bytes_sent),
            .bytes_received = int64_t(traffic.bytes_received)};
  }

 private:
  const Job& job_;
  Group& group_;
  const std::unique_ptr<Queue> queue_;
  Buffer state_;  // of nobody: it evaluates no sample
  BatchLeader leader_;
  Examiner examiner_;
};

// One of the others; its exit code.
int Follow(const Job& job, const RunContext& context, Engine& engine, World& world, SpanSink* spans,
           FunctionRef<int(int code)> end) {
  Portions portions(job, engine, world.rank(), spans);
  Examiner examiner(job, engine, portions.queue());
  const auto meet = [&](int64_t what) {
    if (what == kExamine) {
      portions.Pause();
      examiner.Run(portions.state(), world.rank() - 1, job.workers(), &world.group());
    } else {
      examiner.Details(&world.group());
    }
  };
  BatchWorker worker({.world = world,
                      .portions = portions,
                      .layout = job.layout,
                      .vectors = VectorsOf(job),
                      .decay = job.recipe.optimizer.weight_decay,
                      .signal = [&] { return context.signals.received(); },
                      .meet = meet});
  const int signal = worker.Serve();
  return end(signal ? StopWish::ExitCodeOf(signal) : 0);
}

int Lead(const Job& job, const RunContext& context, const Start& start,
         BatchTrainer::Ranks& ranks) {
  Recorder recorder(job, *context.directory, context.progress, start.at);
  BatchTrainer trainer(job, ranks, recorder, context.signals);
  const Ending ending = trainer.Run(start);
  ranks.objective().End(trainer.signal());
  context.report({ending, recorder.summary(), {}});
  return ending == Ending::kSignal ? StopWish::ExitCodeOf(trainer.signal()) : 0;
}

}  // namespace

int RunBatchRank(const Job& job, const RunContext& context, const Start& start, World& world,
                 SpanSink* spans) {
  if (job.only_self_test) throw UsageError("{}", WhyNoSelfTest(job.strategy));
  Backend backend = job.make_backend(job.NeedsOf(world.rank()));
  if (world.size() == 1) {
    OwnRank rank(job, *backend.engine, spans);
    return Lead(job, context, start, rank);
  }
  // Nobody closes its links before all have heard the end.
  const auto end = [&](int code) {
    Barrier(world.group(), kTagPreflight);
    return code;
  };
  if (world.rank() != kRecordingRank) {
    return Follow(job, context, *backend.engine, world, spans, end);
  }
  LedRanks ranks(job, *backend.engine, world);
  return end(Lead(job, context, start, ranks));
}

}  // namespace trireme
