#include "study/experiments.h"

namespace trireme {

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

}  // namespace trireme
