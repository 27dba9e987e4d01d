#include "health/weight_check.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "flat/arithmetic.h"
#include "flat/cpu/host.h"
#include "flat/staging.h"
#include "graph/layout.h"
#include "graph/models/models.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

TEST(WeightCheck, TheOddOneOutIsTheOneThatMostOthersContradict) {
  const std::vector<uint64_t> good{1, 2, 3}, bad{1, 7, 3};
  EXPECT_TRUE(FindOddRanks({good, good, good}).empty());
  const auto odd = FindOddRanks({bad, good, good});
  ASSERT_EQ(odd.size(), 1u);
  EXPECT_EQ(odd[0].rank, 0);
  EXPECT_EQ(odd[0].tensor, 1u);
  EXPECT_EQ(odd[0].like, 1);
  EXPECT_EQ(FindOddRanks({good, bad})[0].rank, 1);  // of two nobody knows
}

TEST(WeightCheck, NamesRankAndTensorOnAllRanks) {
  const Graph graph = BuildModel({.name = "mlp:4-8-3"}, {1, 1, 4}, 3);
  const Layout layout = LayOut(graph);
  const std::vector<float> state = InitialState(graph, layout, 5);
  for (const int odd : {-1, 0, 2}) {
    std::atomic<int> named = 0;
    const auto train = [&](World& world) {
      HostDevice device;
      const auto queue = device.NewQueue();
      const Buffer own(device, layout.state);
      WeightCheck check(world.group(), graph, layout, device);
      flat::PutNow(*queue, state, own);
      if (world.rank() == odd) own.slice().host()[layout.parameters.back().begin] += 1e-6f;
      try {
        check.Run(50, *queue, own);
      } catch (const Error& error) {
        const std::string what = error.what();
        EXPECT_NE(what.find("after step 50 rank " + std::to_string(odd)), std::string::npos)
            << what;
        EXPECT_NE(what.find(graph.parameters.back().name), std::string::npos) << what;
        ++named;
      }
    };
    RunRanks(3, 60, train);
    EXPECT_EQ(named, odd < 0 ? 0 : 3);
  }
}

}  // namespace
}  // namespace trireme
