#include "graph/models/options.h"

namespace trireme {

void Describe(OptionTable<ModelOptions>& t) {
  using M = ModelOptions;
  t.Add("name", &M::name, Any(), "the network: mlp:4-30-20-3, cnn, resnet18, ...");
  t.Add("activation", &M::activation, OneOf({"relu", "sigmoid", "tanh"}), "mlp: between layers");
  t.Add("norm", &M::norm, OneOf({"auto", "none", "batch", "layer", "layer-plain"}),
        "mlp: normalisation of hidden layers; layer-plain has no weights of its own");
  t.Add("loss", &M::loss, OneOf({"cross-entropy", "squared-error"}),
        "squared error is half the sum over classes; an mlp then ends in its activation");
  t.Add("dropout", &M::dropout, AtLeast(0) && Below(1), "share of hidden values set to zero");
  t.Add("smoothing", &M::smoothing, AtLeast(0) && Below(1),
        "cross-entropy: share of a label that is spread over all classes");
  t.Add("stem", &M::stem, OneOf({"auto", "7x7", "3x3"}),
        "resnets: the first convolution; auto is 3x3 for pictures of 64 pixels and below");
}

}  // namespace trireme
