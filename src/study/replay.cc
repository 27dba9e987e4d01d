#include "study/replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "engine/engines.h"
#include "recipe/trainer_options.h"

namespace trireme {
namespace {

constexpr char kNoNumbers[] = "The published numbers were not available, so only ours are shown.";

// Digits where they are, else clothes, else pictures made on the fly.
struct Pictures {
  std::string source, words;
};
Pictures FindDigits(const ReplaySize& size) {
  if (size.data) return {*size.data, "Data: " + *size.data + "."};
  if (Exists("data/mnist")) return {"mnist:data/mnist", "Data: MNIST."};
  if (Exists("/usr/share/datasets/fashion-mnist")) {
    return {"fashion-mnist",
            "Data: Fashion-MNIST, of the same shape and size, stands in for MNIST, which is not in "
            "data/mnist."};
  }
  return {"synthetic:28x28x1:10:60000",
          "Data: synthetic images of MNIST's shape and size stand in for it; neither data/mnist "
          "nor Debian's dataset-fashion-mnist was found."};
}

std::string Set(std::string_view key, std::string_view value) {
  return fmt::format("{}={}", key, value);
}

Replay BspMnist(const ReplaySize& size) {
  const Pictures digits = FindDigits(size);
  Replay replay{.name = "bsp-mnist",
                .title = "Bulk-synchronous training of digits: P samples x N workers",
                .text =
                    "Workers in one process around a broker (strategy bsp): each computes the "
                    "gradient of P samples, all wait at a barrier, and one adds up the gradients. "
                    "Our network is 784-200-10 with sigmoids and squared error. " +
                    digits.words + " " + kNoNumbers};
  ReplayPart part{.name = "workers", .title = "Time over workers, by samples per worker and step"};
  part.plan = {.recipe = "mnist-classic",
               .settings = {Set("data.source", digits.source), Set("strategy.name", "bsp"),
                            Set("trainer.threads", "1"), Set("trainer.evaluate_every", "0"),
                            Set("data.limit", size.full ? "0" : "12000"),
                            Set("trainer.epochs", size.full ? "5" : "1")},
               .vary = {{"transport.ranks", {"1", "2", "4"}},
                        {"trainer.batch_per_worker", {"1", "10", "100"}}},
               .repeat = size.repeat};
  if (size.full) part.plan.vary[0].values = {"1", "2", "4", "8"};
  part.text = size.full ? "All samples, five passes."
                        : "12,000 samples, one pass; --full trains on all of them five times.";
  replay.parts.push_back(std::move(part));
  return replay;
}

// Send and receive through a server against all-reduce.
ReplayPart ServerAgainstAllReduce(const ReplaySize& size, std::string recipe) {
  ReplayPart part{.name = "ranks", .title = "Time over ranks, by how gradients are summed"};
  part.plan = {
      .recipe = std::move(recipe),
      .settings = {Set("transport.name", "tcp"), Set("trainer.threads", "1")},
      .vary = {{"transport.ranks", {"2", "3", "4"}}, {"strategy.name", {"sync-ps", "allreduce"}}},
      .repeat = size.repeat};
  part.text =
      "sync-ps: rank 0 holds the weights and does not train; the others send it gradients and "
      "receive weights (MPI_Send, MPI_Recv). allreduce: every rank trains (MPI_Allreduce). Ranks "
      "are processes on this machine that talk over TCP; speed-up is relative to two ranks. ";
  return part;
}

Replay IrisMpi(const ReplaySize& size) {
  Replay replay{.name = "iris-mpi",
                .title = "Iris over message passing: send and receive against all-reduce",
                .text = std::string("Ours: a 4-30-20-3 network. ") + kNoNumbers};
  ReplayPart part = ServerAgainstAllReduce(size, "iris");
  part.plan.settings.push_back(Set("trainer.epochs", size.full ? "1000" : "60"));
  part.plan.settings.push_back(Set("trainer.evaluate_every", "0"));
  if (size.full) part.plan.vary[0].values = {"2", "3", "4", "8"};
  part.text += size.full ? "1,000 passes." : "60 passes; --full makes 1,000.";
  replay.parts.push_back(std::move(part));
  return replay;
}

Replay ScenesMpi(const ReplaySize& size) {
  Replay replay{
      .name = "scenes-mpi",
      .title = "Scenes over message passing: send and receive against all-reduce",
      .text = std::string(
                  "A three-layer perceptron on the pixels of Intel's scene images, 150x150x3. ") +
              kNoNumbers};
  ReplayPart part = ServerAgainstAllReduce(size, "iris");
  if (!size.data) {
    part.skipped = "it needs the images; use --data images:DIR";
  } else {
    part.plan.settings.insert(part.plan.settings.end(),
                              {Set("data.source", *size.data), Set("data.size", "150"),
                               Set("model.name", "mlp:67500-128-64-6"), Set("trainer.batch", "32"),
                               Set("trainer.epochs", size.full ? "10" : "1"),
                               Set("optimizer.schedule", "constant"), Set("optimizer.lr", "0.01")});
    if (!size.full) part.plan.settings.push_back(Set("data.limit", "600"));
  }
  replay.parts.push_back(std::move(part));
  return replay;
}

Replay Resnet50Batch(const ReplaySize& size) {
  Replay replay{
      .name = "resnet50-batch",
      .title = "ResNet-50: time over the batch size",
      .text = std::string("One pass over the same samples, with 5 to 50 per step. ") + kNoNumbers};
  ReplayPart part{.name = "batch", .title = "Time over the batch size"};
  part.plan = {
      .recipe = "cifar10-resnet18",
      .settings = {Set("model.name", "resnet50"), Set("model.stem", "7x7"),
                   Set("data.source", size.data.value_or(size.full ? "synthetic:224x224x3:1000:1000"
                                                                   : "synthetic:64x64x3:10:100")),
                   Set("data.augment", "none"), Set("trainer.epochs", "1"),
                   Set("trainer.evaluate_every", "0"), Set("optimizer.warmup_epochs", "0")},
      .vary = {{"trainer.batch", {"5", "10", "20", "25", "50"}}},
      .repeat = size.repeat};
  if (size.full) part.plan.vary[0].values = {"5", "10", "15", "20", "25", "30", "40", "50"};
  part.text = size.full ? "1,000 images of 224 pixels."
                        : "100 images of 64 pixels; --full uses 1,000 of 224 pixels.";
  replay.parts.push_back(std::move(part));
  return replay;
}

// What the parts of ddp-sweep have in common: a worker's step is a sleep, as long as a device would
// compute, so that two processors carry many workers.
SweepPlan EmulatedPlan(const ReplaySize& size, int samples, double step_ms) {
  const int all = size.full ? 10 * samples : samples;
  return {.recipe = "fashion-mlp",
          .settings = {Set("data.source", fmt::format("synthetic:28x28x1:10:{}", all)),
                       Set("trainer.epochs", "1"), Set("trainer.threads", "1"),
                       Set("trainer.evaluate_every", "0"), Set("trainer.self_test", "false"),
                       Set("emulate.step_ms", fmt::format("{:g}", step_ms))},
          .repeat = size.repeat};
}

ReplayPart DdpRanks(const ReplaySize& size) {
  ReplayPart part{.name = "ranks", .title = "Time over GPUs of one node"};
  part.plan = EmulatedPlan(size, 1920, 40);
  part.plan.settings.push_back(Set("trainer.batch_per_worker", "16"));
  part.plan.vary = {{"transport.ranks", {"1", "2", "3", "4"}}};
  part.published = &FindPublished("ddp-gpus");
  part.text =
      "Ours: ranks are threads; a GPU's step of 16 samples is a sleep of 40 ms, but the sum is "
      "real. Our ranks share nothing but memory; whatever keeps the published node from gaining "
      "more from its third and fourth GPU is not reproduced here.";
  return part;
}

ReplayPart DdpNodes(const ReplaySize& size) {
  ReplayPart part{.name = "nodes", .title = "Time over nodes"};
  part.plan = EmulatedPlan(size, 1920, 40);
  part.plan.settings.insert(
      part.plan.settings.end(),
      {Set("trainer.batch_per_worker", "16"), Set("transport.name", "tcp"),
       Set("transport.throttle", "125e6"), Set("transport.latency_ms", "0.1")});
  part.plan.vary = {{"transport.ranks", {"1", "2", "4", "8"}}};
  if (size.full) part.plan.vary[0].values.push_back("16");
  part.published = &FindPublished("ddp-nodes");
  part.text =
      "Ours: a node is a process; its step of 16 samples is a sleep of 40 ms; gradients (0.94 MB) "
      "are summed over TCP, throttled to 1 Gbit/s with a latency of 0.1 ms.";
  return part;
}

ReplayPart DdpLoaders(const ReplaySize& size) {
  ReplayPart part{.name = "loaders", .title = "Time over loader workers"};
  part.plan = EmulatedPlan(size, 640, 16);
  part.plan.settings.insert(part.plan.settings.end(),
                            {Set("trainer.batch", "16"), Set("emulate.decode_ms", "4")});
  part.plan.vary = {{"data.threads", {"1", "2", "4", "8", "16"}}};
  part.published = &FindPublished("ddp-loaders");
  part.text =
      "Ours: decoding a sample is a sleep of 4 ms in a loader thread, a step of 16 samples is a "
      "sleep of 16 ms. The two were chosen so that decoding with one thread takes four times as "
      "long as computing, the published ratio of 1 to 16 workers; what is measured is the course "
      "in between.";
  return part;
}

ReplayPart DdpBatch(const ReplaySize& size) {
  ReplayPart part{.name = "batch", .title = "Time over the batch size"};
  part.plan = {.recipe = "fashion-mlp",
               .settings = {Set("data.source", "synthetic:28x28x1:10:60000"),
                            Set("data.limit", size.full ? "60000" : "12000"),
                            Set("trainer.epochs", "1"), Set("trainer.evaluate_every", "0")},
               .vary = {{"trainer.batch", {"16", "32", "64", "128", "256"}}},
               .repeat = size.repeat};
  part.text = std::string("A 784-256-128-10 perceptron that is really computed. ") + kNoNumbers;
  return part;
}

ReplayPart DdpPrecision(const ReplaySize& size) {
  ReplayPart part{.name = "precision", .title = "Time by precision"};
  part.plan = {.recipe = "fashion-mlp",
               .settings = {Set("data.source", "synthetic:28x28x1:10:60000"),
                            Set("data.limit", size.full ? "60000" : "12000"),
                            Set("trainer.epochs", "1"), Set("trainer.evaluate_every", "0")},
               .vary = {{"trainer.precision", {"f32", "bf16"}}},
               .repeat = size.repeat};
  part.published = &FindPublished("ddp-precision");
  const EngineKind& engine = FindEngine(TrainerOptions{}.device);
  if (const std::string why_not = engine.why_not(Precision::kBf16); !why_not.empty()) {
    part.plan.vary[0].values = {"f32"};
    part.text = "The bf16 row is left out here: " + why_not + ".";
  }
  return part;
}

Replay DdpSweep(const ReplaySize& size) {
  Replay replay{
      .name = "ddp-sweep",
      .title = "Distributed data-parallel training: ranks, nodes, loaders, batch, precision",
      .text =
          "The published times are minutes and hours on a cluster; ours are seconds on "
          "an emulated one. What is compared is the shape: the speed-up."};
  replay.parts = {DdpRanks(size), DdpNodes(size), DdpLoaders(size), DdpBatch(size),
                  DdpPrecision(size)};
  return replay;
}

constexpr ReplayKind kReplays[] = {
    {"bsp-mnist", "bulk-synchronous workers on digits: P samples x N workers", BspMnist},
    {"iris-mpi", "Iris: send and receive against all-reduce, over ranks", IrisMpi},
    {"scenes-mpi", "scene images: send and receive against all-reduce, over ranks", ScenesMpi},
    {"resnet50-batch", "ResNet-50: time over the batch size", Resnet50Batch},
    {"ddp-sweep", "ranks, nodes, loader workers, batch size, precision", DdpSweep},
};

}  // namespace

std::span<const ReplayKind> ReplayKinds() { return kReplays; }

const ReplayKind& FindReplay(std::string_view name) {
  std::vector<std::string> names;
  for (const ReplayKind& kind : kReplays) {
    if (kind.name == name) return kind;
    names.emplace_back(kind.name);
  }
  throw UsageError("no replay is called \"{}\"; there are {}{}", name, fmt::join(names, ", "),
                   DidYouMean(name, names));
}

}  // namespace trireme
