#include "study/step_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/clock.h"

namespace trireme {
namespace {

// 10 us, 1 GB/s; additions cost nothing.
StepCluster Network() {
  StepCluster cluster;
  cluster.link = {{1e-5, 1e-9}, {1e-5, 1e-9}, 0};
  return cluster;
}

// 100 ms of forward, 50 ms of backward, one stretch of 8 MB that is final at the end.
StepModel OneStretch() {
  StepModel model;
  model.forward.fixed = 0.1;
  model.backward.fixed = 0.05;
  model.update_s = 0.01;
  model.stretches = {{8e6, 1.0}};
  model.batch = 64;
  model.samples = 6400;
  return model;
}

TEST(SimulateStep, IsTheSumOfItsPartsWhereNothingOverlaps) {
  const StepModel model = OneStretch();
  const StepCluster network = Network();
  EXPECT_NEAR(SimulateStep(model, network, 1, {}).step_s, 0.16, 1e-12);
  for (const int n : {2, 3, 4, 7, 64, 1000}) {
    const double ring = 2.0 * (n - 1) * 1e-5 + 2.0 * (n - 1) / n * 8e6 * 1e-9;
    const StepForecast step = SimulateStep(model, network, n, {"ring", 4e6});
    EXPECT_NEAR(step.step_s, 0.16 + ring, 1e-9) << n;
    EXPECT_NEAR(step.latency_s + step.bandwidth_s, ring, 1e-9);
    EXPECT_NEAR(step.latency_s, 2.0 * (n - 1) * 1e-5, 1e-9);
  }
  const double halving = 2 * 3 * 1e-5 + 2.0 * 7 / 8 * 8e6 * 1e-9;
  EXPECT_NEAR(SimulateStep(model, network, 8, {"halving-doubling", 4e6}).step_s, 0.16 + halving,
              1e-9);
}

TEST(SimulateStep, HidesWhatBackwardCovers) {
  StepModel model = OneStretch();
  model.stretches = {{4e6, 0.2}, {4e6, 1.0}};  // the first is summed while backward goes on
  const StepForecast cut = SimulateStep(model, Network(), 2, {"ring", 1e6});
  const StepForecast whole = SimulateStep(model, Network(), 2, {"ring", 1e9});
  EXPECT_NEAR(cut.step_s, 0.16 + 2e-5 + 4e-3, 1e-9);
  EXPECT_NEAR(whole.step_s, 0.16 + 2e-5 + 8e-3, 1e-9);
  // A link that is busy makes later buckets wait.
  model.backward.fixed = 0;
  EXPECT_NEAR(SimulateStep(model, Network(), 2, {"ring", 1e6}).step_s, 0.11 + 4e-5 + 8e-3, 1e-9);
}

TEST(SimulateStep, ALinkThatSavesABurstIsSoMuchEarlier) {
  StepCluster network = Network();
  network.burst_s = 5e-3;
  const double without = SimulateStep(OneStretch(), Network(), 4, {"ring", 4e6}).step_s;
  EXPECT_NEAR(SimulateStep(OneStretch(), network, 4, {"ring", 4e6}).step_s, without - 5e-3, 1e-9);
}

TEST(SimulateStep, WaitsForItsLoader) {
  StepModel model = OneStretch();
  model.loader_s_per_sample = 0.5 / 64;
  const StepForecast step = SimulateStep(model, Network(), 1, {});
  EXPECT_NEAR(step.step_s, 0.5, 1e-9);
  EXPECT_NEAR(step.data_s, 0.5 - 0.16, 1e-9);
  EXPECT_EQ(step.Bound(), "loader");
  model.loader_s_per_sample = 0.1 / 64;
  EXPECT_NEAR(SimulateStep(model, Network(), 1, {}).step_s, 0.16, 1e-9);
}

TEST(SimulateStep, StepsGrowWithRanksLinksAndStragglers) {
  const StepModel model = OneStretch();
  StepCluster network = Network();
  double before = 0;
  for (int n = 1; n <= 4096; n *= 2) {
    const double step = SimulateStep(model, network, n, {"ring", 4e6}).step_s;
    EXPECT_GT(step, before);
    before = step;
  }
  StepCluster slower = network, late = network, jittery = network;
  slower.link.any.seconds_per_byte *= 2;
  late.link.any.latency_s *= 2;
  jittery.jitter = 0.05;
  const double usual = SimulateStep(model, network, 8, {"ring", 4e6}).step_s;
  EXPECT_GT(SimulateStep(model, slower, 8, {"ring", 4e6}).step_s, usual);
  EXPECT_GT(SimulateStep(model, late, 8, {"ring", 4e6}).step_s, usual);
  EXPECT_NEAR(SimulateStep(model, jittery, 8, {"ring", 4e6}).step_s,
              usual + 0.15 * 0.05 * ExpectedMaximum(8), 1e-9);
}

TEST(ExpectedMaximum, IsTheKnownOne) {
  EXPECT_NEAR(ExpectedMaximum(1), 0, 1e-6);
  EXPECT_NEAR(ExpectedMaximum(2), 1 / std::sqrt(M_PI), 1e-5);
  EXPECT_NEAR(ExpectedMaximum(3), 1.5 / std::sqrt(M_PI), 1e-5);
  EXPECT_NEAR(ExpectedMaximum(100), 2.50759, 1e-4);
  EXPECT_NEAR(ExpectedMaximum(10000), 3.85159, 1e-3);
}

TEST(StepModel, SharesTheBatchOrGrowsIt) {
  StepModel model = OneStretch();
  EXPECT_EQ(model.SamplesPerWorker(3), 22);  // of the one that has most
  EXPECT_EQ(model.StepsPerEpoch(3), 100);
  model.batch_per_worker = true;
  EXPECT_EQ(model.SamplesPerWorker(3), 64);
  EXPECT_EQ(model.StepsPerEpoch(4), 25);
}

TEST(FindBestChoice, IsNoWorseThanAnyChoice) {
  StepModel model = OneStretch();
  model.stretches.clear();
  for (int i = 1; i <= 20; ++i) model.stretches.push_back({1e6, i / 20.0});
  for (const int n : {2, 6, 64, 1000}) {
    const BestChoice best = FindBestChoice(model, Network(), n);
    for (const char* algorithm : {"ring", "halving-doubling", "tree", "chain"}) {
      for (const double size : {2.5e5, 4e6, 1e9}) {
        EXPECT_LE(best.forecast.step_s,
                  SimulateStep(model, Network(), n, {algorithm, size}).step_s * (1 + 1e-9));
      }
    }
    EXPECT_EQ(AutomaticAlgorithm(model, Network(), n, 4e6),
              n == 64 || n == 1000 ? "halving-doubling" : "ring");
  }
}

// 160 stretches, as ResNet-50 has; every size up to ten thousand ranks, with the best choice.
TEST(FindBestChoice, TenThousandRanksAreNotTooMany) {
  StepModel model = OneStretch();
  model.stretches.clear();
  for (int i = 1; i <= 160; ++i) model.stretches.push_back({6e5, i / 160.0});
  StepCluster network = Network();
  network.ranks_per_node = 4;
  network.jitter = 0.05;
  for (int n = 1; n <= 10000; n = n * 2 + 1)
    EXPECT_GT(FindBestChoice(model, network, n).forecast.step_s, 0);
}

}  // namespace
}  // namespace trireme
