#include "graph/models/vit.h"

#include <algorithm>

#include "base/error.h"
#include "graph/models/layers.h"

namespace trireme {
namespace {

constexpr int kSmallImage = 64;  // px
constexpr int kLayers = 12;
constexpr float kEpsilon = 1e-6f;

struct Variant {
  int width;  // channels of a token
  int heads;
};

class Vit {
 public:
  Vit(const ModelOptions& options, Variant variant, Shape input)
      : options_(options), variant_(variant), build_(input) {}

  Graph Build(int patch, int classes) && {
    x_ = build_.Add("conv2d", {x_}, {.channels = variant_.width, .kernel = patch, .stride = patch},
                    "conv_proj");
    x_ = build_.Add("class_token", {x_}, {}, "class_token");
    x_ = build_.Add("position_embedding", {x_}, {}, "encoder.pos_embedding");
    x_ = AddDropout(build_, options_, x_, "encoder.dropout");
    for (int i = 0; i < kLayers; ++i) {
      Layer(fmt::format("encoder.layers.encoder_layer_{}", i),
            float(options_.stochastic_depth * i / (kLayers - 1)));
    }
    x_ = Norm(x_, "encoder.ln");
    x_ = build_.Add("first_token", {x_}, {}, "first_token");
    x_ = build_.Add("dense", {x_}, {.channels = classes}, "heads.head");
    return FinishWithLoss(std::move(build_), options_, x_);
  }

 private:
  ValueId Norm(ValueId x, const std::string& name) {
    return build_.Add("layer_norm", {x}, {.tokens = true, .epsilon = kEpsilon}, name);
  }
  ValueId Dense(ValueId x, int channels, const std::string& name) {
    return build_.Add("dense", {x}, {.channels = channels, .tokens = true}, name);
  }

  // Adds a branch to what has been built.
  void Join(ValueId branch, const std::string& name, float rate) {
    if (rate > 0) {
      branch = build_.Add("stochastic_depth", {branch}, {.rate = rate}, name + ".stochastic_depth");
    }
    x_ = build_.Add("add", {branch, x_}, {}, name + ".add");
  }

  void Layer(const std::string& name, float rate) {
    const std::string attention = name + ".self_attention", mlp = name + ".mlp";
    ValueId y = Norm(x_, name + ".ln_1");
    y = Dense(y, 3 * variant_.width, attention + ".in_proj_");
    y = build_.Add("attention", {y}, {.heads = variant_.heads}, attention);
    y = Dense(y, variant_.width, attention + ".out_proj");
    Join(AddDropout(build_, options_, y, name + ".dropout"), name, rate);
    y = Norm(x_, name + ".ln_2");
    y = Dense(y, 4 * variant_.width, mlp + ".0");
    y = build_.Add("gelu", {y}, {}, mlp + ".1");
    y = AddDropout(build_, options_, y, mlp + ".2");
    y = Dense(y, variant_.width, mlp + ".3");
    Join(AddDropout(build_, options_, y, mlp + ".4"), name, rate);
  }

  const ModelOptions& options_;
  const Variant variant_;
  Builder build_;
  ValueId x_ = 0;  // the end of what has been built
};

Graph BuildVit(const ModelOptions& options, const std::string& sizes, Shape input, int classes,
               Variant variant) {
  RefuseSizes(options, sizes);
  RefuseStem(options);
  const ModelOptions standard;
  if ((options.activation != standard.activation && options.activation != "gelu") ||
      (options.norm != "auto" && options.norm != "layer")) {
    throw UsageError(
        "{} has gelu and layer-norm; got model.activation = \"{}\", model.norm = "
        "\"{}\"",
        options.name, options.activation, options.norm);
  }
  if (!(options.stochastic_depth >= 0 && options.stochastic_depth < 1)) {
    throw UsageError("model.stochastic_depth must be at least 0 and below 1, got {}",
                     options.stochastic_depth);
  }
  const int patch = std::max(input.height, input.width) <= kSmallImage ? 4 : 16;
  if (input.height % patch != 0 || input.width % patch != 0) {
    throw UsageError(
        "{} needs images with sides that are multiples of {} px, got {}x{}; set "
        "data.size",
        options.name, patch, input.height, input.width);
  }
  return Vit(options, variant, input).Build(patch, classes);
}

}  // namespace

Graph BuildVitTi(const ModelOptions& options, const std::string& sizes, Shape input, int classes) {
  return BuildVit(options, sizes, input, classes, {192, 3});
}

Graph BuildVitS(const ModelOptions& options, const std::string& sizes, Shape input, int classes) {
  return BuildVit(options, sizes, input, classes, {384, 6});
}

Graph BuildVitB(const ModelOptions& options, const std::string& sizes, Shape input, int classes) {
  return BuildVit(options, sizes, input, classes, {768, 12});
}

}  // namespace trireme
