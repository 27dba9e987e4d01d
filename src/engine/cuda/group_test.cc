// What a device group promises, by NCCL, on the cards that there are: skipped without a card or
// without NCCL, with the reason. On one card it is a group of one.
#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "engine/cuda/library.h"
#include "flat/group_check.h"

namespace trireme::cuda {
namespace {

class CudaGroupTest : public testing::Test {
 protected:
  void SetUp() override {
    static const Survey survey = AskInChild(TRIREME_CUDA_PLUGIN_FILE);
    if (!survey.problem.empty()) GTEST_SKIP() << survey.problem;
    count_ = int(survey.cards.size());
    Add(0);
    if (const std::string problem = groups_[0]->problem(); !problem.empty()) {
      GTEST_SKIP() << problem;
    }
  }

  void Add(int card) {
    const Table& table = OpenTable(TRIREME_CUDA_PLUGIN_FILE);
    devices_.push_back(table.make_device(card, {}));
    groups_.push_back(table.make_groups(*devices_.back()));
  }

  std::vector<GroupMember> Members() const {
    std::vector<GroupMember> members;
    for (size_t i = 0; i < devices_.size(); ++i) members.push_back({*devices_[i], *groups_[i]});
    return members;
  }

  int count_ = 0;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<DeviceGroups>> groups_;
};

TEST_F(CudaGroupTest, OneCardKeepsThePromises) { CheckDeviceGroup(Members()); }

TEST_F(CudaGroupTest, AllCardsKeepThePromises) {
  for (int card = 1; card < count_; ++card) Add(card);
  CheckDeviceGroup(Members());
}

TEST_F(CudaGroupTest, ACardIsTheSameForEveryRankOnIt) {
  Add(0);
  EXPECT_EQ(groups_[0]->identity(), groups_[1]->identity());
}

TEST_F(CudaGroupTest, AnIdThatIsNoneIsAnError) {
  const auto join = [&](const DeviceGroups::Id& id) { groups_[0]->Join(id, 1, 1, [] {}); };
  EXPECT_THROW(join(groups_[0]->NewId()), Error);  // rank 1 of 1
}

}  // namespace
}  // namespace trireme::cuda
