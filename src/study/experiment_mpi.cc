#include "study/experiments.h"

namespace trireme {
namespace {

// Both programs of the course, in the words of our recipes.
Variation Exchanges() {
  return {"exchange",
          {"send and receive", "all-reduce"},
          {{"strategy.name=sync-ps", "strategy.merge=difference", "strategy.route=star"},
           {"strategy.name=allreduce-weights"}}};
}

ReplayPart SendReceiveAgainstAllReduce(const ReplaySize& size, std::string recipe) {
  const TransportKind& transport = size.transport ? *size.transport : *FindTransport("tcp");
  ReplayPart part{.name = "ranks", .title = "Time over ranks that train, by how weights travel"};
  part.plan = {.recipe = std::move(recipe),
               .settings = {Set("trainer.threads", "1"), Set("trainer.batch_per_worker", "4"),
                            Set("trainer.evaluate_every", "0")},
               .vary = {{kWorkers, {"1", "2", "4"}}, Exchanges()},
               .repeat = size.repeat};
  // A launcher tells its ranks how to talk.
  if (transport.run) part.plan.settings.push_back(Set("transport.name", transport.name));
  if (size.full) part.plan.vary[0].values = {"1", "2", "4", "8", "12", "16", "20"};
  part.text = fmt::format(
      "Send and receive: rank 0 holds the weights and does not train; the other ranks send it the "
      "change of their weights and receive the new weights (sync-ps, merge difference, route "
      "star). "
      "All-reduce: every rank updates its own weights, and an all-reduce averages the packed "
      "weights "
      "after every batch (allreduce-weights). The same number of ranks trains on both sides, each "
      "with batches of 4; rank 0 of send and receive comes on top. The original adds up the "
      "changes, "
      "ours averages them, so both sides train the same function. Ranks are processes on this "
      "machine; transport: {}. ",
      transport.name);
  part.text += size.full ? "" : "--full goes up to 20 ranks.";
  return part;
}

}  // namespace

Replay IrisMpi(const ReplaySize& size) {
  Replay replay{.name = "iris-mpi",
                .title = "Iris over message passing: send and receive against all-reduce",
                .text =
                    "A 4-30-20-3 network with sigmoids, normalisation between layers and squared "
                    "error, 100 epochs, rate 0.01. The report has diagrams with up to 20 ranks on "
                    "one node, but gives no times for Iris in words."};
  replay.parts.push_back(SendReceiveAgainstAllReduce(size, "iris-classic"));
  return replay;
}

Replay ScenesMpi(const ReplaySize& size) {
  Replay replay{.name = "scenes-mpi",
                .title = "Scenes over message passing: send and receive against all-reduce",
                .text =
                    "A three-layer perceptron on the pixels of Intel's scene images, 150x150x3, "
                    "with the settings of iris-mpi. One epoch."};
  ReplayPart part = SendReceiveAgainstAllReduce(size, "scenes-classic");
  part.claims = {{&FindClaim("scenes-epoch"), TimesAsLong}};
  if (!size.data) {
    part.skipped = "it needs the images; use --data images:DIR";
  } else {
    part.plan.settings.insert(part.plan.settings.end(),
                              {Set("data.source", *size.data), Set("trainer.epochs", "1")});
    if (!size.full) part.plan.settings.push_back(Set("data.limit", "220"));
    part.text += size.full ? " All images; the original had 14,000."
                           : " 220 images, the smaller number of the original; --full uses all.";
  }
  replay.parts.push_back(std::move(part));
  return replay;
}

}  // namespace trireme
