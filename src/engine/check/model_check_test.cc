#include "engine/check/model_check.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "engine/ref/engine.h"
#include "graph/chains_test.h"
#include "graph/layout.h"
#include "graph/models/models.h"
#include "graph/program.h"

namespace trireme::check {
namespace {

TEST(ModelCheck, AcceptsTheJudgeItself) {
  RefEngine engine;
  EXPECT_TRUE(CheckModelAgainstRef(engine, BuildModel({}, {1, 1, 4}, 3), 5, 8));
  EXPECT_TRUE(CheckModelAgainstRef(
      engine, BuildModel({.name = "cnn", .dropout = 0.3}, {8, 8, 1}, 3), 2, 3));
  EXPECT_TRUE(CheckModelAgainstRef(
      engine,
      BuildModel({.name = "mlp", .activation = "sigmoid", .norm = "layer", .loss = "squared-error"},
                 {3, 3, 2}, 4),
      1, 2));
}

// Chains that it computes part by part: what comes out is what the network without them makes.
TEST(ModelCheck, ChainsTrainAsTheirPartsDo) {
  const std::vector<std::vector<Fusion>> lists = {
      {{&kConv2dBatchNormRelu}},
      {{&kStem}},
      {{&FindOp("batch_norm_relu")}, {&kNormAndWeightsGrad}},
      {{&FindOp("batch_norm_add_relu")}, {&FindOp("add_relu_grad")}}};
  const Graph graphs[] = {BuildModel({.name = "cnn"}, {8, 8, 1}, 3),
                          BuildModel({.name = "resnet18", .stem = "7x7"}, {16, 16, 1}, 3)};
  size_t joined = 0;
  for (const Graph& graph : graphs) {
    RefEngine plain;
    const std::vector<float> want = SummandOf(plain, graph, 2);
    for (const std::vector<Fusion>& fusions : lists) {
      RefEngine engine(fusions);
      EXPECT_EQ(SummandOf(engine, graph, 2), want);
      const auto program = Compile(graph, engine, 2, Mode::kTrain, 1);
      for (const Instruction& i : program->instructions) joined += i.op->parts.size() > 0;
    }
  }
  EXPECT_GE(joined, 40u);
  RefEngine engine({{&kConv2dBatchNormRelu}, {&FindOp("dense_relu")}});
  EXPECT_TRUE(CheckModelAgainstRef(engine, graphs[0], 2, 3));
}

// Without batch-norm and dropout forward is the same, and so are the gradients of what is trained.
TEST(ModelCheck, GradientsBehindFrozenLayersAreThoseOfTheWholeNetwork) {
  RefEngine engine({{&FindOp("dense_relu")}});
  for (const std::string name : {"cnn", "mlp:64-9-8-7-3"}) {
    const Graph whole = BuildModel({.name = name, .norm = "none"}, {8, 8, 1}, 3);
    const Layout all = LayOut(whole);
    const std::vector<float> want = SummandOf(engine, whole, 2);
    std::vector<std::string> layers;
    for (const Node& node : whole.nodes) {
      if (!node.parameters.empty()) layers.push_back(node.name);
    }
    layers.pop_back();
    for (const std::string& layer : layers) {
      const Graph graph =
          BuildModel({.name = name, .norm = "none", .freeze = "up to " + layer}, {8, 8, 1}, 3);
      const Layout layout = LayOut(graph);
      const std::vector<float> got = SummandOf(engine, graph, 2);
      EXPECT_EQ(got[layout.loss()], want[all.loss()]);
      for (size_t p = 0; p < graph.parameters.size(); ++p) {
        const Range here = layout.parameters[p], there = all.parameters[p];
        if (layout.IsFrozen(here)) continue;
        EXPECT_TRUE(std::equal(got.begin() + std::ptrdiff_t(here.begin),
                               got.begin() + std::ptrdiff_t(here.end()),
                               want.begin() + std::ptrdiff_t(there.begin)))
            << layer << " " << graph.parameters[p].name;
      }
      EXPECT_TRUE(CheckModelAgainstRef(engine, graph, 2, 3)) << layer;
    }
  }
}

// The judge with one wrong number, or with buckets in another order.
class Wrong : public RefEngine {
 public:
  explicit Wrong(bool order) : order_(order) {}
  std::unique_ptr<Executable> Load(std::shared_ptr<const Program> program, Queue& queue) override {
    return std::make_unique<WrongExecutable>(RefEngine::Load(program, queue), program, order_);
  }

 private:
  class WrongExecutable : public Executable {
   public:
    WrongExecutable(std::unique_ptr<Executable> right, std::shared_ptr<const Program> program,
                    bool order)
        : Executable(program), right_(std::move(right)), order_(order) {}
    Event RunShard(const Batch& batch, Slice state, Slice summand, bool accumulate,
                   Ready ready) override {
      const Event event = right_->RunShard(batch, state, summand, accumulate, {});
      if (!order_) summand.host()[0] += 0.01f;
      const auto& buckets = program_->buckets;
      for (size_t i = 0; ready && i < buckets.size(); ++i) {
        ready(buckets[order_ ? buckets.size() - 1 - i : i], event);
      }
      return event;
    }
    void Evaluate(const Batch& batch, Slice state, const Results& results) override {
      right_->Evaluate(batch, state, results);
    }

   private:
    const std::unique_ptr<Executable> right_;
    const bool order_;
  };
  const bool order_;
};

TEST(ModelCheck, FindsMistakes) {
  for (const bool order : {false, true}) {
    Wrong engine(order);
    EXPECT_FALSE(CheckModelAgainstRef(engine, BuildModel({}, {1, 1, 4}, 3), 5, 8));
  }
}

}  // namespace
}  // namespace trireme::check
