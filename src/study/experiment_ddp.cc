#include "engine/engines.h"
#include "study/experiments.h"

namespace trireme {
namespace {

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
  part.claims = {{&FindClaim("ddp-whole")}};
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
  part.claims = {{&FindClaim("ddp-loaders"), FastestOf}};
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
  part.claims = {{&FindClaim("ddp-batch"), FastestOf}};
  part.text = "A 784-256-128-10 perceptron that is really computed.";
  return part;
}

ReplayPart DdpPrecision(const ReplaySize& size) {
  ReplayPart part{.name = "precision", .title = "Time by precision"};
  part.plan = {.recipe = "fashion-mlp",
               .settings = {Set("data.source", "synthetic:28x28x1:10:60000"),
                            Set("data.limit", size.full ? "60000" : "12000"),
                            Set("trainer.epochs", "1"), Set("trainer.evaluate_every", "0")},
               .vary = {{"trainer.precision", {}}},
               .repeat = size.repeat};
  part.published = &FindPublished("ddp-precision");
  const std::string device = size.device.value_or(std::string(HostEngine().name));
  part.plan.settings.push_back(Set("trainer.device", device));
  const EngineKind& engine = *FindDevice(device).kind;
  for (const Precision precision : kPrecisions) {
    const std::string name(NameOf(precision));
    if (const std::string why_not = engine.why_not(precision); why_not.empty()) {
      part.plan.vary[0].values.push_back(name);
    } else if (size.device || precision == Precision::kBf16) {
      part.text += fmt::format("{}The {} row is left out here: {}.", part.text.empty() ? "" : " ",
                               name, why_not);
    }
  }
  return part;
}

}  // namespace

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

}  // namespace trireme
