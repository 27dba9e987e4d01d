#include "graph/models/rates.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "graph/models/models.h"

namespace trireme {
namespace {

Graph ResNet(const std::string& freeze = "") {
  return BuildModel({.name = "resnet18", .freeze = freeze}, {32, 32, 3}, 10);
}

std::string MessageOf(const Graph& graph, const std::string& rates) {
  try {
    RatesOf(graph, rates);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Rates, TheLongestNameCounts) {
  const Graph graph = ResNet();
  const std::vector<double> rates = RatesOf(graph, "layer1.0=0.5 layer1=0.1  fc=3 layer1.0.bn2=0");
  for (size_t p = 0; p < rates.size(); ++p) {
    const std::string& name = graph.parameters[p].name;
    double want = 1;
    if (name.starts_with("layer1.")) want = 0.1;
    if (name.starts_with("layer1.0.")) want = 0.5;
    if (name.starts_with("layer1.0.bn2.")) want = 0;
    if (name.starts_with("fc.")) want = 3;
    EXPECT_EQ(rates[p], want) << name;
  }
  EXPECT_TRUE(RatesOf(graph, "").empty());
}

TEST(Rates, RefusesWhatSaysNothing) {
  const Graph graph = ResNet("up to layer1");
  for (const char* wrong : {"layer1", "layer1=", "layer1=-1", "=2", "layer1=x", "layer2=1e999"}) {
    EXPECT_NE(MessageOf(graph, wrong).find("NAME=FACTOR"), std::string::npos) << wrong;
  }
  EXPECT_NE(MessageOf(graph, "layr2=1").find("layer2"), std::string::npos);
  EXPECT_NE(MessageOf(graph, "layer2=1 layer2=2").find("twice"), std::string::npos);
  EXPECT_NE(MessageOf(graph, "layer1=0.1").find("frozen"), std::string::npos);
  EXPECT_EQ(MessageOf(graph, "layer2=0.1"), "");
}

}  // namespace
}  // namespace trireme
