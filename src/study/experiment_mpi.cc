#include "study/experiments.h"

namespace trireme {
namespace {

// Send and receive through a server against all-reduce.
ReplayPart ServerAgainstAllReduce(const ReplaySize& size, std::string recipe) {
  ReplayPart part{.name = "ranks", .title = "Time over ranks, by how gradients are summed"};
  part.plan = {
      .recipe = std::move(recipe),
      .settings = {Set("transport.name", "tcp"), Set("trainer.threads", "1")},
      .vary = {{"transport.ranks", {"2", "3", "4"}}, {"strategy.name", {"sync-ps", "allreduce"}}},
      .repeat = size.repeat};
  part.text =
      "sync-ps: rank 0 holds the weights and does not train, gradients are sent to it and weights "
      "received (MPI_Send, MPI_Recv); allreduce: every rank trains (MPI_Allreduce). Ranks are "
      "processes of this machine that talk over TCP; speed-up is against two ranks. ";
  return part;
}

}  // namespace

Replay IrisMpi(const ReplaySize& size) {
  Replay replay{.name = "iris-mpi",
                .title = "Iris over message passing: send and receive against all-reduce",
                .text = "A network of 4-30-20-3. The report's diagrams have no numbers in words."};
  ReplayPart part = ServerAgainstAllReduce(size, "iris");
  part.plan.settings.push_back(Set("trainer.epochs", size.full ? "1000" : "60"));
  part.plan.settings.push_back(Set("trainer.evaluate_every", "0"));
  if (size.full) part.plan.vary[0].values = {"2", "3", "4", "8"};
  part.text += size.full ? "1,000 passes." : "60 passes; --full makes 1,000.";
  replay.parts.push_back(std::move(part));
  return replay;
}

Replay ScenesMpi(const ReplaySize& size) {
  Replay replay{.name = "scenes-mpi",
                .title = "Scenes over message passing: send and receive against all-reduce",
                .text =
                    "A perceptron of three layers on the pixels of Intel's scene images, "
                    "150x150x3."};
  ReplayPart part = ServerAgainstAllReduce(size, "iris");
  part.claims = {{&FindClaim("scenes-epoch"), TimesAsLong}};
  if (!size.data) {
    part.skipped = "it needs the images: --data images:DIR";
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

}  // namespace trireme
