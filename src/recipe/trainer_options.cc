#include "recipe/trainer_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/cores.h"
#include "engine/engines.h"

namespace trireme {

void Describe(OptionTable<TrainerOptions>& t) {
  using enum Binds;
  using T = TrainerOptions;
  std::string computes =
      "what computes: auto: a card, or cpu where there is none (and, unless somebody wrote auto, "
      "with deterministic)";
  for (const EngineKind& kind : EngineKinds()) {
    computes += fmt::format("; {}: {}", kind.name, kind.help);
  }
  t.Add(
      "epochs", &T::epochs, Above(0), kJob,
      "passes over the training samples; 0.5 is half a pass; without a recipe, for tables: by the "
      "number of rows");
  t.Add("steps", &T::steps, AtLeast(0), kJob,
        "steps of the whole run; 0: as many as the epochs need");
  t.Add(
      "batch", &T::batch, AtLeast(1) || OneOf({"full"}), kRun,
      "samples per step over all workers; \"full\": all of them; without a recipe, for tables: by "
      "the number of rows");
  t.Add("batch_per_worker", &T::batch_per_worker, AtLeast(0), kRun,
        "instead of batch: samples per step for each worker (weak scaling); 0: not used");
  t.Add("shards", &T::shards, AtLeast(0), kJob,
        "parts of a step's batch, each with its own batch-norm statistics and gradient; 0: one per "
        "worker, times accumulate");
  t.Add("accumulate", &T::accumulate, Between(1, 1 << 20), kJob,
        "shards that each worker computes one after the other: less memory, the same step");
  t.Add("seed", &T::seed, AtLeast(0), kRun,
        "determines initial weights, order, augmentation and split");
  t.Add(
      "init", &T::init, Any(), kRanks,
      "weights that the run starts from: a safetensors file, onnx:FILE, a checkpoint's folder, or "
      "a run (its best checkpoint, else its last); empty: random weights from seed");
  t.Add("init_except", &T::init_except, Any(), kRanks,
        "layers, separated by spaces, that keep random weights although trainer.init names others; "
        "NAME also means all whose names begin with it and a dot");
  t.Add(
      "threads", &T::threads, Between(1, 1024) || OneOf({"auto"}), kLocal,
      "threads of each rank that compute; \"auto\": the cores of the job, divided among the ranks "
      "of the machine");
  t.Add("pin", &T::pin, Any(), kNothing,
        "keep each of several ranks on its own share of the machine's cores, if there is at least "
        "one core per rank");
  t.Add("precision", &T::precision, OneOf({"f32", "tf32", "bf16", "fp16", "bf16-or-f32"}), kJob,
        "\"bf16\" rounds the operands of products and keeps the values between layers in bf16, but "
        "sums, weights and statistics in float32, with instructions that not every processor has; "
        "\"bf16-or-f32\" falls back to float32 where they are missing; \"tf32\", on a card, "
        "multiplies with 10 bits of the mantissa and keeps everything in float32; \"fp16\", on "
        "cards and ref, is as bf16 with 10 bits of the mantissa, but scales the loss so that small "
        "gradients do not vanish (optimizer.loss_scale)");
  t.Add("device", &T::device, OneLike(DeviceWords(), IsDevice), kRanks, computes);
  t.Add("deterministic", &T::deterministic, Any(), kJob,
        "identical bits for any number of workers with the same trainer.shards (set it, or each "
        "worker has one)");
  t.Add("clip", &T::clip, AtLeast(0), kJob, "largest norm of a step's gradient; 0: no limit");
  t.Add(
      "ema", &T::ema, AtLeast(0) && Below(1), kJob,
      "share that a step keeps of an average of weights and statistics (less in the first steps), "
      "which is then what is evaluated and saved; 0: no average");
  t.Add("self_test", &T::self_test, Any(), kJob,
        "with several ranks in step: before the first step, the gradient of one sample per shard "
        "is compared with the one that rank 0 computes alone");
  t.Add(
      "check_steps", &T::check_steps, AtLeast(0), kJob,
      "with several ranks in step: steps between checks that all hold the same weights; 0: never");
  t.Add("evaluate_every", &T::evaluate_every, AtLeast(0), kJob,
        "epochs between evaluations on the test and the validation samples; 0: only at the end of "
        "the run");
  t.Add(
      "patience", &T::patience, AtLeast(0), kJob,
      "evaluations without a better accuracy, or RMSE of numbers (on the validation samples, or on "
      "the test samples if there are none) after which training stops and returns to the best "
      "checkpoint; 0: never");
  t.Add("target_accuracy", &T::target_accuracy, Between(0, 1), kJob,
        "stop when the accuracy (as for patience) reaches this; 0: never");
  t.Add("checkpoint_steps", &T::checkpoint_steps, AtLeast(0), kJob,
        "steps between checkpoints; 0: none inside an epoch");
  t.Add("checkpoint_epochs", &T::checkpoint_epochs, AtLeast(0), kJob,
        "epochs between checkpoints, besides that of the best evaluation; 0: only at the end of "
        "the run");
  t.Add("keep", &T::keep, AtLeast(1), kJob,
        "newest checkpoints to keep; the best one is kept as well");
  t.Add(
      "metrics_steps", &T::metrics_steps, AtLeast(0), kJob,
      "steps between lines of metrics.jsonl inside an epoch, each with the mean loss of its steps; "
      "0: one line per epoch");
  t.Add("stall_seconds", &T::stall_seconds, AtLeast(0), kJob,
        "seconds without progress of ranks in step after which the run reports what each rank is "
        "waiting for and fails; 0: never");
}

int CountThreads(const TrainerOptions& options, int sharing, bool process_each) {
  if (!options.threads.is_word()) return int(options.threads.number);
  return ThreadsOfEach(ReadCoreFacts(), std::max(1, sharing), process_each);
}

}  // namespace trireme
