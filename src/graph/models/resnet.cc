#include "graph/models/resnet.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "graph/models/layers.h"

namespace trireme {
namespace {

constexpr int kSmallImage = 64;  // px

struct Variant {
  std::array<int, 4> blocks;  // of each stage
  bool bottleneck;            // blocks of 1x1, 3x3, 1x1 convolutions instead of two 3x3
};

class ResNet {
 public:
  explicit ResNet(Shape input) : build_(input) {}

  Graph Build(const ModelOptions& options, const Variant& variant, int classes) && {
    Stem(options);
    for (int stage = 0; stage < 4; ++stage) {
      for (int block = 0; block < variant.blocks[stage]; ++block) {
        const int stride = stage > 0 && block == 0 ? 2 : 1;
        Block(fmt::format("layer{}.{}", stage + 1, block), 64 << stage, stride, variant.bottleneck);
      }
    }
    x_ = build_.Add("global_average_pool", {x_}, {}, "avgpool");
    x_ = build_.Add("dense", {x_}, {.channels = classes}, "fc");
    return FinishWithLoss(std::move(build_), options, x_);
  }

 private:
  ValueId Relu(ValueId x, const std::string& name) { return build_.Add("relu", {x}, {}, name); }

  // A convolution that keeps the size but for its stride, and its batch-norm.
  ValueId Convolve(ValueId x, int channels, int kernel, int stride, const std::string& conv,
                   const std::string& norm) {
    x = build_.Add("conv2d", {x},
                   {.channels = channels,
                    .kernel = kernel,
                    .stride = stride,
                    .padding = kernel / 2,
                    .bias = false},
                   conv);
    return build_.Add("batch_norm", {x}, {}, norm);
  }

  void Stem(const ModelOptions& options) {
    const Shape input = build_.shape(x_);
    const bool small =
        options.stem == "3x3" ||
        (options.stem == "auto" && std::max(input.height, input.width) <= kSmallImage);
    x_ = Relu(
        small ? Convolve(x_, 64, 3, 1, "conv1", "bn1") : Convolve(x_, 64, 7, 2, "conv1", "bn1"),
        "relu");
    if (small) return;
    x_ = build_.Add("max_pool", {x_}, {.kernel = 3, .stride = 2, .padding = 1}, "maxpool");
  }

  void Block(const std::string& name, int width, int stride, bool bottleneck) {
    const int channels = bottleneck ? 4 * width : width;
    const ValueId before = x_;
    ValueId y = before;
    auto convolve = [&](int number, int out, int kernel, int step) {
      y = Convolve(y, out, kernel, step, fmt::format("{}.conv{}", name, number),
                   fmt::format("{}.bn{}", name, number));
    };
    if (bottleneck) {
      convolve(1, width, 1, 1);
      y = Relu(y, name + ".relu1");
      convolve(2, width, 3, stride);
      y = Relu(y, name + ".relu2");
      convolve(3, channels, 1, 1);
    } else {
      convolve(1, width, 3, stride);
      y = Relu(y, name + ".relu1");
      convolve(2, channels, 3, 1);
    }
    ValueId shortcut = before;
    if (stride != 1 || build_.shape(before).channels != channels) {
      shortcut =
          Convolve(before, channels, 1, stride, name + ".downsample.0", name + ".downsample.1");
    }
    x_ = Relu(build_.Add("add", {y, shortcut}, {}, name + ".add"), name + ".relu");
  }

  Builder build_;
  ValueId x_ = 0;  // the end of what has been built
};

Graph BuildResNet(const ModelOptions& options, const std::string& sizes, Shape input, int classes,
                  const Variant& variant) {
  RefuseSizes(options, sizes);
  RefuseStochasticDepth(options);
  if (options.activation != "relu" || (options.norm != "auto" && options.norm != "batch") ||
      options.dropout != 0) {
    throw UsageError(
        "{} has relu, batch-norm and no dropout; got model.activation = \"{}\", model.norm = "
        "\"{}\", model.dropout = {}",
        options.name, options.activation, options.norm, options.dropout);
  }
  if (options.stem != "auto" && options.stem != "7x7" && options.stem != "3x3") {
    throw UsageError("model.stem must be auto, 7x7 or 3x3, got \"{}\"", options.stem);
  }
  return ResNet(input).Build(options, variant, classes);
}

}  // namespace

Graph BuildResNet18(const ModelOptions& options, const std::string& sizes, Shape input,
                    int classes) {
  return BuildResNet(options, sizes, input, classes, {{2, 2, 2, 2}, false});
}

Graph BuildResNet34(const ModelOptions& options, const std::string& sizes, Shape input,
                    int classes) {
  return BuildResNet(options, sizes, input, classes, {{3, 4, 6, 3}, false});
}

Graph BuildResNet50(const ModelOptions& options, const std::string& sizes, Shape input,
                    int classes) {
  return BuildResNet(options, sizes, input, classes, {{3, 4, 6, 3}, true});
}

Graph BuildResNet101(const ModelOptions& options, const std::string& sizes, Shape input,
                     int classes) {
  return BuildResNet(options, sizes, input, classes, {{3, 4, 23, 3}, true});
}

Graph BuildResNet152(const ModelOptions& options, const std::string& sizes, Shape input,
                     int classes) {
  return BuildResNet(options, sizes, input, classes, {{3, 8, 36, 3}, true});
}

}  // namespace trireme
