#include "health/stall.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

Standing At(Phase phase, int64_t step, double since_s = 31) { return {{phase, step}, since_s}; }

TEST(Stall, WhoIsNotInTheCallIsNamed) {
  const std::vector<Standing> all = {At(Phase::kReduce, 812), At(Phase::kReduce, 812),
                                     At(Phase::kData, 812)};
  EXPECT_EQ(FindMissing(all), std::vector<int>{2});
  const auto lines = DescribeStall(all);
  EXPECT_EQ(lines[1], "rank 1 has been waiting for rank 2 in the all-reduce of step 812 for 31 s");
  EXPECT_EQ(lines[2], "rank 2 has been fetching the samples of step 812 for 31 s");
  EXPECT_EQ(BlameStall(all, 30),
            "no progress for 30 s (trainer.stall_seconds): rank 2 never reached the all-reduce of "
            "step 812; rank 2 has been fetching the samples of step 812 for 31 s");
}

TEST(Stall, WhoIsBehindIsNamed) {
  const std::vector<Standing> all = {At(Phase::kReduce, 6), At(Phase::kReduce, 5),
                                     At(Phase::kReduce, 6)};
  EXPECT_EQ(FindMissing(all), std::vector<int>{1});
  const std::vector<Standing> scores = {At(Phase::kScore, 6), At(Phase::kEpochEnd, 6)};
  EXPECT_EQ(FindMissing(scores), std::vector<int>{1});
}

TEST(Stall, ACheckpointThatNeverEndsIsNamed) {
  const std::vector<Standing> all = {At(Phase::kCheckpoint, 100), At(Phase::kReduce, 100)};
  EXPECT_EQ(FindMissing(all), std::vector<int>{0});
}

TEST(Stall, WhoDoesNotAnswerComesFirst) {
  std::vector<Standing> all = {At(Phase::kReduce, 6), At(Phase::kCompute, 6), At(Phase::kData, 6)};
  all[1].silent_s = 8;
  EXPECT_EQ(FindMissing(all), std::vector<int>{1});
  EXPECT_NE(BlameStall(all, 5).find("rank 1 has not answered"), std::string::npos);
}

TEST(Stall, WhereAllWaitTheLinkIsToBlame) {
  std::vector<Standing> all = {At(Phase::kReduce, 6), At(Phase::kReduce, 6)};
  EXPECT_TRUE(FindMissing(all).empty());
  EXPECT_NE(BlameStall(all, 5).find("all ranks wait in the all-reduce of step 6"),
            std::string::npos);
  all[0].unheard = 1;
  all[0].unheard_s = 7;
  EXPECT_NE(
      BlameStall(all, 5).find("rank 0 has heard nothing from rank 1 for 7 s; probably the link"),
      std::string::npos);
}

TEST(Stall, OneRankAloneSaysWhatItDoes) {
  const std::vector<Standing> all = {At(Phase::kData, 6)};
  EXPECT_NE(BlameStall(all, 5).find("rank 0 is fetching the samples of step 6"), std::string::npos);
  EXPECT_EQ(DescribeStall(all)[0], "rank 0 has been fetching the samples of step 6 for 31 s");
}

}  // namespace
}  // namespace trireme
