#include "graph/layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "graph/models/models.h"

namespace trireme {
namespace {

Graph Cnn() { return BuildModel({.name = "cnn"}, {8, 8, 3}, 5); }

TEST(LayOut, PutsTheLastLayerFirstAndALayersParametersTogether) {
  const Graph graph = Cnn();
  const Layout layout = LayOut(graph);
  size_t end = 0;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    for (int i : node->parameters) {
      const Range range = layout.parameters[i];
      EXPECT_EQ(range.begin % Layout::kAlignment, 0u);
      EXPECT_GE(range.begin, end);
      EXPECT_LT(range.begin, end + Layout::kAlignment);
      EXPECT_EQ(int64_t(range.size), graph.parameters[i].size());
      end = range.end();
    }
  }
  EXPECT_GE(layout.weights, end);
  EXPECT_EQ(layout.statistics[0].begin, layout.weights);
  EXPECT_GE(layout.state, layout.statistics.back().end());
  EXPECT_EQ(layout.summand, layout.state + Layout::kStepMetrics);
}

TEST(CutBuckets, TileTheSummandAndEndWithTheTail) {
  const Layout layout = LayOut(BuildModel({.name = "resnet18"}, {32, 32, 3}, 10));
  for (size_t floats :
       {size_t{1}, size_t{100}, size_t{1} << 18, size_t{1} << 22, size_t{1} << 30}) {
    const auto buckets = CutBuckets(layout, floats);
    size_t end = 0;
    for (size_t i = 0; i < buckets.size(); ++i) {
      EXPECT_EQ(buckets[i].index, int(i));
      EXPECT_EQ(buckets[i].range.begin, end);
      end = buckets[i].range.end();
      if (i + 2 < buckets.size()) {
        EXPECT_GE(buckets[i].range.size, floats);
      }
    }
    EXPECT_EQ(end, layout.summand);
    EXPECT_EQ(buckets.back().range.begin, layout.weights);
  }
  EXPECT_EQ(CutBuckets(layout, size_t{1} << 30).size(), 2u);
}

TEST(CutBuckets, NeverSeparateTheParametersOfOneLayer) {
  const Graph graph = Cnn();
  const Layout layout = LayOut(graph);
  const auto buckets = CutBuckets(layout, 1);
  size_t layers = 0;
  std::set<size_t> begins;
  for (const Bucket& bucket : buckets) begins.insert(bucket.range.begin);
  for (const Node& node : graph.nodes) {
    layers += !node.parameters.empty();
    for (size_t k = 0; k < node.parameters.size(); ++k) {
      EXPECT_EQ(begins.count(layout.parameters[node.parameters[k]].begin), k == 0 ? 1u : 0u);
    }
  }
  EXPECT_EQ(buckets.size(), layers + 1);
}

TEST(InitialState, IsAFunctionOfTheSeedWithTheStatedSpread) {
  const Graph graph = BuildModel({.name = "resnet18"}, {32, 32, 3}, 1000);
  const Layout layout = LayOut(graph);
  const auto state = InitialState(graph, layout, 1);
  EXPECT_EQ(state, InitialState(graph, layout, 1));
  EXPECT_NE(state, InitialState(graph, layout, 2));
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    const ParameterSpec& spec = graph.parameters[i];
    const auto values = std::span(state).subspan(layout.parameters[i].begin, spec.size());
    double sum = 0, squares = 0, largest = 0;
    for (float v : values) {
      sum += v, squares += double(v) * v, largest = std::max(largest, std::fabs(double(v)));
    }
    const double n = double(values.size()), spread = std::sqrt(squares / n);
    if (spec.form == FileForm::kConv2d) {  // He: sqrt(2 / fan out)
      const double want = std::sqrt(2.0 / double(spec.shape[0] * spec.shape[1] * spec.shape[3]));
      EXPECT_NEAR(spread / want, 1, 6 / std::sqrt(n)) << spec.name;
      EXPECT_NEAR(sum / n / want, 0, 6 / std::sqrt(n)) << spec.name;
    } else if (spec.name.starts_with("fc")) {  // uniform within 1 / sqrt(fan in)
      EXPECT_LE(largest, 1 / std::sqrt(512.0));
      EXPECT_NEAR(spread * std::sqrt(3 * 512.0), 1, 6 / std::sqrt(n)) << spec.name;
    } else {
      const float want = spec.name.ends_with("weight") ? 1.0f : 0.0f;
      for (float v : values) EXPECT_EQ(v, want) << spec.name;
    }
  }
  EXPECT_EQ(state[layout.statistics[1].begin], 1.0f);  // a variance
}

TEST(FileForm, OfAConvolutionIsOutInHeightWidth) {
  const ParameterSpec spec{.shape = {2, 3, 5, 7}, .form = FileForm::kConv2d};
  EXPECT_EQ(FileShape(spec), (std::vector<int64_t>{7, 5, 2, 3}));
  std::vector<float> memory(spec.size()), file(spec.size()), back(spec.size());
  std::iota(memory.begin(), memory.end(), 0.0f);
  ToFile(spec, memory, file);
  for (int h = 0; h < 2; ++h) {
    for (int w = 0; w < 3; ++w) {
      for (int i = 0; i < 5; ++i) {
        for (int o = 0; o < 7; ++o) {
          EXPECT_EQ(file[((o * 5 + i) * 2 + h) * 3 + w], memory[((h * 3 + w) * 5 + i) * 7 + o]);
        }
      }
    }
  }
  FromFile(spec, file, back);
  EXPECT_EQ(back, memory);
}

TEST(FileForm, OfADenseLayerBehindAFlattenIsInTorchsOrder) {
  const ParameterSpec spec{
      .shape = {2 * 3 * 5, 4}, .form = FileForm::kDense, .flattened = {2, 3, 5}};
  EXPECT_EQ(FileShape(spec), (std::vector<int64_t>{4, 30}));
  std::vector<float> memory(spec.size()), file(spec.size()), back(spec.size());
  std::iota(memory.begin(), memory.end(), 0.0f);
  ToFile(spec, memory, file);
  for (int h = 0; h < 2; ++h) {
    for (int w = 0; w < 3; ++w) {
      for (int c = 0; c < 5; ++c) {
        for (int o = 0; o < 4; ++o) {  // torch flattens channels first
          EXPECT_EQ(file[o * 30 + (c * 2 + h) * 3 + w], memory[((h * 3 + w) * 5 + c) * 4 + o]);
        }
      }
    }
  }
  FromFile(spec, file, back);
  EXPECT_EQ(back, memory);
}

}  // namespace
}  // namespace trireme
