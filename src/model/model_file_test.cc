#include "model/model_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "graph/layout.h"
#include "graph/models/models.h"
#include "record/safetensors.h"
#include "record/state_files.h"

namespace trireme {
namespace {

// What is said of a file with this one tensor as the weights of a resnet for small pictures.
std::string Refusal(const std::string& name, std::vector<int64_t> shape) {
  const TemporaryDirectory folder;
  SafetensorsWriter writer(folder / "x.safetensors");
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  writer.Add(name, shape, std::vector<float>(size_t(count), 0.0f));
  writer.Finish();
  const Graph graph = BuildModel({.name = "resnet18"}, {32, 32, 3}, 10);
  const Layout layout = LayOut(graph);
  std::vector<float> state(layout.state);
  try {
    LogOutput output;
    InitModel(graph, layout, StateFileReader(folder / "x.safetensors"), state, Log(output));
    return "accepted";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(InitModel, NamesTheWayOut) {
  EXPECT_NE(Refusal("module.conv1.weight", {64, 3, 3, 3}).find("begin with \"module.\""),
            std::string::npos);
  EXPECT_NE(Refusal("conv1.weight", {64, 3, 7, 7}).find("--set model.stem=7x7"), std::string::npos);
  EXPECT_NE(Refusal("another", {1}).find("conv1.weight"), std::string::npos);
}

}  // namespace
}  // namespace trireme
