#include "engine/engines.h"
#include "study/experiments.h"

namespace trireme {

Replay Resnet50Batch(const ReplaySize& size) {
  Replay replay{.name = "resnet50-batch",
                .title = "ResNet-50: time over the batch size",
                .text =
                    "The same number of samples in each run, with 5 to 50 per step. The original "
                    "used 325 images of ImageNet-100, 6 epochs and a rate of 5e-4, on a CPU and on "
                    "a GPU."};
  ReplayPart part{.name = "batch", .title = "Time over the batch size"};
  part.claims = {{&FindClaim("resnet-memory"), PeakMemory},
                 {&FindClaim("resnet-cpu"), TimesAsLong},
                 {&FindClaim("resnet-python")},
                 {&FindClaim("large-batch")}};
  part.plan = {
      .recipe = "cifar10-resnet18",
      .settings = {Set("model.name", "resnet50"), Set("model.stem", "7x7"),
                   Set("data.source", size.data.value_or(size.full ? "synthetic:224x224x3:100:325"
                                                                   : "synthetic:64x64x3:10:100")),
                   Set("data.augment", "none"), Set("trainer.epochs", size.full ? "6" : "1"),
                   Set("optimizer.lr", "5e-4"), Set("trainer.evaluate_every", "0"),
                   Set("optimizer.warmup_epochs", "0")},
      .vary = {{"trainer.batch", {"5", "10", "20", "25", "50"}}},
      .repeat = size.repeat};
  if (size.full) part.plan.vary[0].values = {"5", "10", "15", "20", "25", "30", "40", "50"};
  part.text = size.full
                  ? "325 images of 224 pixels, six passes."
                  : "100 images of 64 pixels, one pass; --full uses 325 of 224 pixels, six passes.";
  if (size.device) {
    part.plan.vary.push_back({"trainer.device", {std::string(HostEngine().name), *size.device}});
  } else {
    part.text += " Ours runs on the processor; --device cuda puts a card beside it.";
  }
  replay.parts.push_back(std::move(part));
  return replay;
}

}  // namespace trireme
