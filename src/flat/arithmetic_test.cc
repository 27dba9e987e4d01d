#include "flat/arithmetic.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include "flat/cpu/host.h"
#include "flat/table_check.h"

namespace trireme {
namespace {

// Every instruction set that this machine has, the plainest one included.
std::vector<int64_t> Targets() {
  std::vector<int64_t> targets;
  for (int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    targets.push_back(rest & -rest);
  }
  return targets;
}

class ArithmeticTest : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { Choose(GetParam()); }
  void TearDown() override { Choose(0); }
  static void Choose(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  HostDevice device_;
};

TEST_P(ArithmeticTest, AgreesWithPlainLoopsInDouble) {
  for (size_t n : {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 97, 257}) {
    for (size_t offset : {0, 1, 16}) CheckTable(device_, n, offset, n);
  }
}

TEST_P(ArithmeticTest, AgreesWithPlainLoopsOnLongSlices) { CheckTable(device_, 100003, 3, 1); }

INSTANTIATE_TEST_SUITE_P(Targets, ArithmeticTest, testing::ValuesIn(Targets()),
                         [](const auto& target) {
                           return std::string(hwy::TargetName(target.param));
                         });

TEST(ArithmeticDeathTest, RefusesSlicesThatDoNotMatch) {
  HostDevice here, there;
  auto queue = here.NewQueue();
  Buffer a(here, 8), b(here, 8), other(there, 8);
  flat::Add(*queue, a, b);
  EXPECT_DEATH(flat::Add(*queue, a, b.slice().Sub(0, 7)), "size");
  EXPECT_DEATH(flat::Add(*queue, a, other), "device");
  EXPECT_DEATH(flat::Add(*there.NewQueue(), a, b), "device");
  EXPECT_DEATH(a.slice().Sub(4, 5), "length");
}

}  // namespace
}  // namespace trireme
