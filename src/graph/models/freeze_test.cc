#include "graph/models/freeze.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "graph/layout.h"
#include "graph/models/models.h"
#include "graph/op.h"
#include "graph/paper_engine_test.h"
#include "graph/program.h"

namespace trireme {
namespace {

constexpr Shape kInput{32, 32, 3};

Graph Model(const std::string& name, const std::string& freeze) {
  return BuildModel({.name = name, .freeze = freeze}, kInput, 10);
}

const std::vector<Fusion> kFusions = {{&FindOp("dense_relu")},
                                      {&FindOp("conv2d_batch_norm")},
                                      {&FindOp("batch_norm_add_relu")},
                                      {&FindOp("batch_norm_relu")}};

std::string MessageOf(const std::string& model, const std::string& freeze) {
  try {
    Model(model, freeze);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

bool Holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Freeze, ANameStandsForTheLastLayerThatItBegins) {
  const Graph graph = Model("resnet18", "up to layer2");
  for (const Node& node : graph.nodes) {
    const bool late = node.name.starts_with("layer3") || node.name.starts_with("layer4") ||
                      node.name == "avgpool" || node.name == "fc" || node.name == "loss";
    EXPECT_EQ(node.frozen, !late) << node.name;
  }
  const Graph one = Model("resnet18", "up to conv1");
  EXPECT_EQ(std::ranges::count(one.nodes, true, &Node::frozen), 1);
}

TEST(Freeze, ToTheLayoutFrozenWeightsAreBehindAllThatChanges) {
  const Graph graph = Model("resnet18", "up to layer2");
  const Layout layout = LayOut(graph), all = LayOut(Model("resnet18", ""));
  std::vector<bool> taken(layout.state);
  const auto take = [&](const Range& range, bool frozen) {
    EXPECT_EQ(layout.IsFrozen(range), frozen);
    EXPECT_EQ(range.begin % Layout::kAlignment, 0u);
    ASSERT_LE(range.end(), frozen ? layout.state : layout.trained());
    const auto begin = taken.begin() + std::ptrdiff_t(range.begin);
    EXPECT_EQ(std::count(begin, begin + std::ptrdiff_t(range.size), true), 0);
    std::fill_n(begin, range.size, true);
  };
  for (const Node& node : graph.nodes) {
    for (const int p : node.parameters) {
      take(layout.parameters[size_t(p)], node.frozen);
      EXPECT_EQ(layout.parameters[size_t(p)].end() <= layout.weights, !node.frozen);
    }
    for (const int s : node.statistics) take(layout.statistics[size_t(s)], node.frozen);
  }
  EXPECT_EQ(layout.state, all.state);
  EXPECT_GT(layout.frozen, 0u);
  EXPECT_EQ(layout.summand, layout.trained() + Layout::kStepMetrics);
  EXPECT_EQ(layout.cuts.back(), layout.weights);
}

TEST(Freeze, TheInitialWeightsAreThoseOfTheWholeNetwork) {
  const Graph whole = BuildModel({.name = "cnn"}, {8, 8, 3}, 5);
  const Graph graph =
      BuildModel({.name = "cnn", .freeze = "up to " + whole.nodes[0].name}, {8, 8, 3}, 5);
  const Layout layout = LayOut(graph), all = LayOut(whole);
  ASSERT_GT(layout.frozen, 0u);
  const auto initial = InitialState(graph, layout, 4), before = InitialState(whole, all, 4);
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    const Range here = layout.parameters[p], there = all.parameters[p];
    EXPECT_TRUE(std::equal(initial.begin() + std::ptrdiff_t(here.begin),
                           initial.begin() + std::ptrdiff_t(here.end()),
                           before.begin() + std::ptrdiff_t(there.begin)))
        << graph.parameters[p].name;
  }
}

// For every border of every model: backward has the operations of the whole network's behind the
// border, but for gradients of the border's inputs, and none before it.
TEST(Freeze, BackwardEndsBehindTheLastFrozenLayer) {
  for (const std::string model : {"resnet18", "cnn", "mlp:3072-20-10-10"}) {
    const Graph whole = Model(model, "");
    const Program all = *Compile(whole, PaperEngine(), 4, Mode::kTrain, 1);
    std::vector<std::string> layers;
    for (const Node& node : whole.nodes) {
      if (!node.parameters.empty()) layers.push_back(node.name);
    }
    layers.pop_back();  // nothing would be left
    for (const std::string& border : layers) {
      const Graph graph = Model(model, "up to " + border);
      for (const auto& fusions : {std::vector<Fusion>{}, kFusions}) {
        const Program program = *Compile(graph, PaperEngine(fusions), 4, Mode::kTrain, 1);
        const Layout& layout = program.layout;
        std::vector<int> written(graph.parameters.size());
        for (const Instruction& i : program.instructions) {
          for (const Range& range : WrittenGradients(i)) {
            const auto at = std::ranges::find(layout.parameters, range.begin, &Range::begin);
            ++written[size_t(at - layout.parameters.begin())];
          }
          for (const Range& range : i.backward ? i.parameters : std::vector<Range>()) {
            EXPECT_FALSE(layout.IsFrozen(range)) << border << " " << i.name;
          }
        }
        for (size_t p = 0; p < written.size(); ++p) {
          EXPECT_EQ(written[p], layout.IsFrozen(layout.parameters[p]) ? 0 : 1)
              << border << " " << graph.parameters[p].name;
        }
        size_t finished = 0;
        for (const Instruction& i : program.instructions) finished += i.finishes.size();
        EXPECT_EQ(finished + 1, program.buckets.size());
        if (!fusions.empty()) continue;
        const auto backward = [](const Program& p) {
          return std::ranges::count(p.instructions, true, &Instruction::backward);
        };
        EXPECT_LT(backward(program), backward(all)) << border;
      }
    }
  }
}

TEST(Freeze, FrozenLayersComputeAsInEvaluation) {
  const std::string layers =
      "fc1: dense 20\nbn1: batch_norm\ndropout 0.5\nfc2: dense 20\nbn2: batch_norm\n"
      "dropout 0.5\nfc3: dense classes";
  const Graph graph =
      BuildModel({.name = "text", .layers = layers, .freeze = "up to fc2"}, {.channels = 4}, 3);
  const Program program = *Compile(graph, PaperEngine(), 4, Mode::kTrain, 1);
  std::vector<std::string> forward;
  for (const Instruction& i : program.instructions) {
    if (!i.backward) forward.push_back(i.op->name);
  }
  EXPECT_EQ(forward,
            (std::vector<std::string>{"dense", "batch_norm_inference", "dense", "batch_norm",
                                      "dropout", "dense", "softmax_cross_entropy", "tally"}));
}

TEST(Freeze, RefusesWhatIsNoBorder) {
  EXPECT_TRUE(Holds(MessageOf("resnet18", "layer1"), "expected \"up to NAME\""));
  EXPECT_TRUE(Holds(MessageOf("resnet18", "up to "), "expected \"up to NAME\""));
  const std::string slip = MessageOf("resnet18", "up to layr2");
  EXPECT_TRUE(Holds(slip, "no layer \"layr2\"") && Holds(slip, "layer2")) << slip;
  const std::string strange = MessageOf("resnet18", "up to backbone");
  EXPECT_TRUE(Holds(strange, "conv1, bn1, layer1, layer2, layer3, layer4, fc")) << strange;
  EXPECT_TRUE(Holds(MessageOf("resnet18", "up to fc"), "leaves nothing to train"));
  EXPECT_TRUE(Holds(MessageOf("resnet18", "up to layer"), "no layer \"layer\""));
  EXPECT_TRUE(Holds(MessageOf("resnet18", "up to loss"), "leaves nothing to train"));
}

}  // namespace
}  // namespace trireme
