#include "graph/models/cnn.h"

#include "base/error.h"
#include "graph/models/layers.h"

namespace trireme {

Graph BuildCnn(const ModelOptions& options, const std::string& sizes, Shape input, int classes) {
  RefuseSizes(options, sizes);
  RefuseStem(options);
  RefuseStochasticDepth(options);
  if (input.height < 4 || input.width < 4) {
    throw UsageError("{} needs images of at least 4x4, got {}x{}", options.name, input.height,
                     input.width);
  }
  const std::string norm = NormOr(options, "batch");
  Builder build(input);
  ValueId x = build.input();
  int block = 0;
  auto convolve = [&](int channels) {
    const std::string name = fmt::format("features.{}", block++);
    x = build.Add(
        "conv2d", {x},
        {.channels = channels, .kernel = 3, .stride = 1, .padding = 1, .bias = norm != "batch"},
        name + ".conv");
    x = AddNorm(build, norm, x, name + ".norm");
    x = AddActivation(build, options, x, name + ".activation");
  };
  auto halve = [&] { x = build.Add("max_pool", {x}, {.kernel = 2, .stride = 2}, "pool"); };

  convolve(32);
  halve();
  convolve(64);
  halve();
  convolve(64);
  x = build.Add("flatten", {x}, {}, "flatten");
  x = AddDropout(build, options, x, "dropout");
  x = build.Add("dense", {x}, {.channels = 128}, "classifier.0");
  x = AddActivation(build, options, x, "classifier.1");
  x = AddDropout(build, options, x, "dropout");
  x = build.Add("dense", {x}, {.channels = classes}, "classifier.2");
  return FinishWithLoss(std::move(build), options, x);
}

}  // namespace trireme
