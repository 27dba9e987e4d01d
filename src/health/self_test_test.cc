#include "health/self_test.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace trireme {
namespace {

std::string Verdict(const std::vector<float>& together, const std::vector<float>& alone) {
  try {
    JudgeGradients(CompareGradients(together, alone), 4, 12, 1e-5);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(SelfTest, AcceptsRoundingAndNamesAFactor) {
  std::vector<float> alone(1000), together(1000);
  for (size_t i = 0; i < alone.size(); ++i) alone[i] = float(std::sin(double(i)));
  for (size_t i = 0; i < alone.size(); ++i) together[i] = alone[i] * (1 + 1e-6f * float(i % 3));
  EXPECT_EQ(Verdict(together, alone), "");
  EXPECT_EQ(Verdict(std::vector<float>(5), std::vector<float>(5)), "");

  for (float& value : together) value *= 0.25f;
  EXPECT_NE(Verdict(together, alone).find("0.25 times"), std::string::npos);
  together = alone;
  together[7] += 1;
  EXPECT_NE(Verdict(together, alone).find("something else"), std::string::npos);
  together[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(Verdict(together, alone).find("something else"), std::string::npos);
}

}  // namespace
}  // namespace trireme
