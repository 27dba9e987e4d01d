#include "graph/models/options.h"

#include <fmt/core.h>

#include "graph/models/activations.h"
#include "graph/models/losses.h"
#include "graph/models/models.h"

namespace trireme {

void Describe(OptionTable<ModelOptions>& t) {
  using enum Binds;
  using O = ModelOptions;
  std::string names;
  for (const ModelDef& model : AllModels()) {
    names += (names.empty() ? "" : ", ") + std::string(model.pattern);
  }
  std::string kinds;
  for (const InputKind& kind : InputKinds()) {
    kinds += fmt::format("{}{} for {}", kinds.empty() ? "" : ", ", kind.model, kind.words);
  }
  t.Add("name", &O::name, Any(), kRun, "which network: " + names + "; without a recipe: " + kinds);
  t.Add("activation", &O::activation, OneOf(ActivationNames()), kRun,
        "activation after every hidden layer (mlp, cnn); with squared-error and absolute-error, "
        "an mlp's sigmoid or tanh also follows the output layer");
  t.Add("norm", &O::norm, OneOf({"auto", "none", "batch", "layer", "layer-plain"}), kRun,
        "normalization between a hidden layer and its activation (mlp, cnn); layer-plain: no scale "
        "and shift; auto: batch, but none for an mlp");
  std::vector<std::string> losses = LossNames();
  losses.insert(losses.begin(), kAutoLoss);
  t.Add("loss", &O::loss, OneOf(losses), kRun,
        "softmax cross-entropy, half the squared distance to the one-hot label (or to a number), "
        "or the sum of the absolute differences from it; auto: cross-entropy for classes, "
        "squared-error for numbers");
  t.Add(
      "dropout", &O::dropout, AtLeast(0) && Below(1), kJob,
      "share of hidden values set to zero (mlp; cnn: around its first dense layer; vit: at the end "
      "of each branch and inside its mlp)");
  t.Add("smoothing", &O::smoothing, AtLeast(0) && Below(1), kJob,
        "share of a label that is spread over all classes (cross-entropy)");
  t.Add("stem", &O::stem, OneOf({"auto", "7x7", "3x3"}), kRun,
        "first layers of a resnet: 7x7 with stride 2 and pooling, or 3x3; auto: 3x3 for images of "
        "at most 64 px");
  t.Add("stochastic_depth", &O::stochastic_depth, AtLeast(0) && Below(1), kJob,
        "share of the samples for which the last residual branches of a vit are left out in "
        "training; less for those before them, 0 for the first");
  t.Add("layers", &O::layers, Any(), kRun,
        "the network as text, layer by layer; model.name is then text, or text:FILE or onnx:FILE, "
        "which read it from a file");
  t.Add("freeze", &O::freeze, Any(), kRun,
        "\"up to NAME\": this layer, or the last whose name begins with NAME and a dot, and all "
        "before it keep the weights that trainer.init gave them and compute as in evaluation; "
        "empty: all layers are trained");
}

}  // namespace trireme
