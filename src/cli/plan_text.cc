#include "cli/plan_text.h"

#include <fmt/core.h>

#include "base/text.h"
#include "graph/models/models.h"
#include "launch/transports.h"
#include "model/evaluation.h"
#include "optimizer/rules.h"
#include "trainer/training_feed.h"

namespace trireme {
namespace {

// What a rank will hold, by what it is for. Nothing of it is taken here.
std::string MemoryText(const Job& job, const Engine& engine, const Program& training,
                       const Program& evaluation) {
  const bool apart = job.recipe.trainer.deterministic;
  const bool averages = job.recipe.trainer.ema > 0;
  const size_t samples = sizeof(float) * size_t(job.graph.input().size());
  const std::pair<const char*, size_t> parts[] = {
      {"activations", training.activation_bytes},
      {"scratch memory of the kernels", engine.ScratchBytes(training)},
      // Trained, a snapshot to evaluate, initial, and two on their way to a checkpoint.
      {averages ? "weights and statistics, five copies, and average"
                : "weights and statistics, five copies",
       (averages ? 6 : 5) * sizeof(float) * job.layout.state},
      {"gradients", sizeof(float) * job.layout.summand * size_t(apart ? job.MostShards(0) : 1)},
      {"optimizer", sizeof(float) * job.layout.weights * SlicesOf(job.recipe.optimizer) /
                        (job.strategy.whole ? size_t(job.workers()) : 1)},
      {"samples of the step and of prefetched steps",
       samples * size_t(job.shard_capacity) * size_t(job.MostShards(0) * StepsInMemory(job))},
      {"evaluation", evaluation.activation_bytes + engine.ScratchBytes(evaluation) +
                         samples * size_t(evaluation.capacity)},
  };
  std::string text = "memory per rank:\n";
  size_t total = 0;
  for (const auto& [name, bytes] : parts) {
    text += fmt::format("  {:<48} {:>10}\n", name, FormatBytes(double(bytes)));
    total += bytes;
  }
  return text + fmt::format("  {:<48} {:>10}\n", "total, without the program and the data set",
                            FormatBytes(double(total)));
}

std::string OptimizerText(const Recipe& recipe) {
  const OptimizerOptions& optimizer = recipe.optimizer;
  if (FindRule(optimizer.name).whole) {
    return fmt::format("model {}, {}, {}", recipe.model.name, optimizer.name,
                       Counted(optimizer.history, "pair"));
  }
  return fmt::format("model {}, {} at {:g}, {}, warm-up of {:g} epochs", recipe.model.name,
                     optimizer.name, optimizer.lr, optimizer.schedule, optimizer.warmup_epochs);
}

}  // namespace

std::string DeviceText(const Job& job) {
  const DeviceChoice device = FindDevice(job.recipe.trainer.device);
  const EngineKind& kind = *device.kind;
  std::string text = device.Text();
  if (!kind.Missing(device.number).empty()) {
    text += ": elsewhere";
  } else if (kind.details) {
    text = kind.details().at(size_t(device.number.value_or(0)));
  } else {
    text += fmt::format(": {}, {}", kind.targets()[0], Counted(job.threads_per_rank, "thread"));
  }
  return fmt::format("{}, {}", text, job.recipe.trainer.precision);
}

std::string PlanText(const Job& job) {
  const Backend backend = job.make_backend({.threads = job.threads_per_rank});
  const auto program =
      Compile(job.graph, *backend.engine, job.shard_capacity, Mode::kTrain, job.bucket_floats());
  const auto evaluation =
      Compile(job.graph, *backend.engine,
              Evaluator::Capacity(*backend.engine, job.graph, *job.data.test), Mode::kEvaluate, 0);
  const DataSet& data = job.data;
  const bool written = FindModel(job.recipe.model.name).read;
  return (written ? DescribeLayers(job.graph) : "") + Describe(*program) +
         MemoryText(job, *backend.engine, *program, *evaluation) +
         fmt::format("samples: {}\n",
                     PartsText(data.train->size(), data.validation ? data.validation->size() : 0,
                               data.test->size())) +
         fmt::format("steps: {} of {}, {} per epoch; {} of at most {}, {}\n",
                     FormatCount(job.plan.steps), Counted(job.plan.batch, "sample"),
                     FormatCount(job.plan.steps_per_epoch()), Counted(job.plan.shards, "shard"),
                     Counted(job.shard_capacity, "sample"), Counted(job.workers(), "worker")) +
         TransportText(job.recipe.transport, job.strategy.leases_work()) + "\n" +
         OptimizerText(job.recipe) + "\n";
}

}  // namespace trireme
