#include "data/balance.h"

#include <gtest/gtest.h>

#include "data/memory_source.h"

namespace trireme {
namespace {

TEST(BalancedWeights, MakeAllClassesCountTheSame) {
  const std::vector<int32_t> labels = {0, 0, 0, 0, 0, 0, 1, 1, 3, 0, 0, 1};
  const FloatSource samples({1, 1, 1}, std::vector<float>(labels.size()), labels);
  const std::vector<float> weights = BalancedWeights(samples, 4);
  ASSERT_EQ(weights.size(), 4u);
  EXPECT_FLOAT_EQ(weights[0], 12.0f / (3 * 8));
  EXPECT_FLOAT_EQ(weights[1], 12.0f / (3 * 3));
  EXPECT_EQ(weights[2], 0);  // there is none
  EXPECT_FLOAT_EQ(weights[3], 12.0f / (3 * 1));
  float sum = 0;
  for (const int32_t label : labels) sum += weights[size_t(label)];
  EXPECT_FLOAT_EQ(sum, 12);
}

}  // namespace
}  // namespace trireme
