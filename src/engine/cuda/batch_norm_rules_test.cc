// Needs no card.
#include "engine/cuda/batch_norm_rules.h"

#include <gtest/gtest.h>

namespace trireme::cuda {
namespace {

constexpr ClusterLimits kH200 = {.processors = 132, .blocks = 16, .shared_bytes = 232'448};

NormSizes Forward(size_t rows, int channels, size_t element_bytes = 2) {
  return {.rows = rows,
          .channels = channels,
          .element_bytes = element_bytes,
          .read = 1,
          .held = 1,
          .written = 1};
}
NormSizes Backward(size_t rows, int channels) {
  NormSizes sizes = Forward(rows, channels);
  sizes.read = sizes.held = 2;
  return sizes;
}

TEST(BatchNormRulesTest, SmallValuesAreHeldByClusters) {
  // ResNet-50 of four pictures: few channels with many rows, and the other way round.
  for (const auto& [rows, channels] : {std::pair<size_t, int>{12'544, 64},
                                       {12'544, 256},
                                       {3'136, 512},
                                       {784, 1'024},
                                       {196, 2'048}}) {
    for (const NormSizes& sizes : {Forward(rows, channels), Backward(rows, channels)}) {
      const auto cluster = PlanNormCluster(sizes, kH200);
      ASSERT_TRUE(cluster) << rows << " x " << channels;
      EXPECT_GE(cluster->groups * cluster->lanes * NormCluster::kPack, channels);
      EXPECT_GE(cluster->chunk * size_t(cluster->blocks), rows);
      EXPECT_GE(cluster->turns * size_t(cluster->threads / cluster->lanes), cluster->chunk);
      EXPECT_GE(cluster->shared_bytes, cluster->chunk * size_t(cluster->lanes * sizes.held) * 16);
      EXPECT_LE(cluster->shared_bytes, cluster->most_shared_bytes);
      EXPECT_GE(cluster->groups * cluster->blocks, 32);  // enough processors work
      EXPECT_LT(cluster->groups * cluster->blocks, kH200.processors);
    }
  }
}

TEST(BatchNormRulesTest, BlocksWaitForOthersOnlyWhereThatIsFaster) {
  EXPECT_EQ(PlanNormCluster(Forward(196, 2'048), kH200)->blocks, 1);
  EXPECT_EQ(PlanNormCluster(Forward(12'544, 64), kH200)->blocks, 16);
  ClusterLimits eight = kH200;
  eight.blocks = 8;
  EXPECT_EQ(PlanNormCluster(Forward(12'544, 64), eight)->blocks, 8);
}

TEST(BatchNormRulesTest, OthersTakeTwoKernels) {
  EXPECT_FALSE(PlanNormCluster(Forward(256 * 3'136, 64), kH200));  // too large
  EXPECT_FALSE(PlanNormCluster(Forward(12'544, 512), kH200));      // slower, if it fits
  EXPECT_FALSE(PlanNormCluster(Forward(784, 100), kH200));         // no whole packs
  EXPECT_FALSE(PlanNormCluster(Forward(0, 64), kH200));
  EXPECT_FALSE(PlanNormCluster(Forward(784, 64), ClusterLimits()));
  ClusterLimits little = kH200;
  little.shared_bytes = 48 << 10;
  EXPECT_FALSE(PlanNormCluster(Backward(12'544, 64), little));
}

TEST(BatchNormRulesTest, WhatIsHeldAndMovedCounts) {
  EXPECT_TRUE(PlanNormCluster(Backward(20'000, 64), kH200));
  NormSizes held = Backward(20'000, 64);
  held.held = 12;
  EXPECT_FALSE(PlanNormCluster(held, kH200));
  const auto bytes = [](int count) {
    NormSizes sizes = Forward(196, 2'048);
    sizes.read = sizes.held = count;
    return PlanNormCluster(sizes, kH200)->shared_bytes;
  };
  EXPECT_EQ(bytes(2), 2 * bytes(1));
}

}  // namespace
}  // namespace trireme::cuda
