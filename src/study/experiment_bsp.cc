#include "base/files.h"
#include "study/experiments.h"

namespace trireme {
namespace {

// Digits where they are, else clothes, else pictures made on the fly.
struct DigitSource {
  std::string source, words;
};
DigitSource FindDigits(const ReplaySize& size) {
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

}  // namespace

Replay BspMnist(const ReplaySize& size) {
  const DigitSource digits = FindDigits(size);
  Replay replay{.name = "bsp-mnist",
                .title = "Bulk-synchronous training of digits: P samples x N workers",
                .text =
                    "Workers in one process around a broker (strategy bsp): each computes the "
                    "gradient of one sample, all wait at a barrier, and one adds up the "
                    "gradients. P is the number of training samples. 784-200-10 with sigmoids and "
                    "squared error, 5 epochs, "
                    "rate 0.1. " +
                    digits.words};
  ReplayPart part{.name = "workers", .title = "Time over workers, by training samples"};
  part.claims = {{&FindClaim("bsp-workers"), FastestOf}};
  // Epochs, rate, network and loss are the recipe's.
  part.plan = {.recipe = "mnist-classic",
               .settings = {Set("data.source", digits.source), Set("strategy.name", "bsp"),
                            Set("trainer.threads", "1"), Set("trainer.batch_per_worker", "1"),
                            Set("trainer.evaluate_every", "0")},
               .vary = {{"transport.ranks", {"1", "2", "4", "8", "16"}},
                        {"data.limit", {"100", "1000", "10000"}}},
               .repeat = size.repeat};
  if (size.full) {
    part.plan.vary[0].values.insert(part.plan.vary[0].values.end(), {"32", "64"});
    part.plan.vary[1].values.push_back("60000");
  } else {
    part.text = "--full adds 60,000 samples, 32 and 64 workers.";
  }
  replay.parts.push_back(std::move(part));
  return replay;
}

}  // namespace trireme
