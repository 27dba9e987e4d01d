// What makes tokens of an image's patches and one row of tokens. The pixels of a value are its
// tokens, line by line.
#include "graph/op.h"
#include "graph/ops/shapes.h"

namespace trireme {
namespace {

Signature InferClassToken(std::span<const ValueSpec> inputs, const Attributes&) {
  const Shape x = inputs[0].shape;
  return {.outputs = {{.shape = {.height = x.height * x.width + 1, .channels = x.channels}}},
          .parameters = {{.name = "", .shape = {1, 1, x.channels}}}};
}

void GradientOfClassToken(GradientBuilder& g) {
  const ValueId dx = g.Add("class_token_grad", {g.d_output()}, {g.spec(g.input())})[0];
  if (g.Needs(0)) g.Set(0, dx);
}

Signature InferPositions(std::span<const ValueSpec> inputs, const Attributes&) {
  const Shape x = inputs[0].shape;
  return {.outputs = {inputs[0]},
          .parameters = {{.name = "",
                          .shape = {1, int64_t{x.height} * x.width, x.channels},
                          .initial = Initial::kEmbedding}}};
}

void GradientOfPositions(GradientBuilder& g) {
  g.Add("position_embedding_grad", {g.d_output()}, {});
  if (g.Needs(0)) g.Set(0, g.d_output());
}

Signature InferFirst(std::span<const ValueSpec> inputs, const Attributes&) {
  return {.outputs = {{.shape = {.channels = inputs[0].shape.channels}}}};
}

void GradientOfFirst(GradientBuilder& g) {
  if (g.Needs(0)) g.Set(0, g.Add("first_token_grad", {g.d_output()}, {g.spec(g.input())})[0]);
}

}  // namespace

extern constinit const OpDef kClassToken = {.name = "class_token",
                                            .summary = "a learnt token, then those of x",
                                            .infer = InferClassToken,
                                            .gradient = GradientOfClassToken};
extern constinit const OpDef kClassTokenGrad = {
    .name = "class_token_grad",
    .summary = "dx without the first token, whose sum is the learnt one's gradient",
    .inputs = {"dy"},
    .outputs = {"dx"},
    .writes_gradients = true};
extern constinit const OpDef kPositionEmbedding = {
    .name = "position_embedding",
    .summary = "y = x + e, with a learnt row e for each token",
    .infer = InferPositions,
    .gradient = GradientOfPositions,
    .in_place = 0b1};
extern constinit const OpDef kPositionEmbeddingGrad = {.name = "position_embedding_grad",
                                                       .summary = "de = sum of dy over the samples",
                                                       .inputs = {"dy"},
                                                       .outputs = {},
                                                       .writes_gradients = true};
extern constinit const OpDef kFirstToken = {.name = "first_token",
                                            .summary = "the first token alone",
                                            .infer = InferFirst,
                                            .gradient = GradientOfFirst};
extern constinit const OpDef kFirstTokenGrad = {
    .name = "first_token_grad",
    .summary = "dy for the first token, zeros for the others",
    .inputs = {"dy"},
    .outputs = {"dx"}};

}  // namespace trireme
