#include "strategy/batch/portion_board.h"

#include <gtest/gtest.h>

#include <set>

namespace trireme {
namespace {

bool Answer(PortionBoard& board, int worker, std::vector<int64_t> portions) {
  return board.Answer(worker, portions);
}

TEST(PortionBoardTest, EveryPortionIsTakenOnceAndAnsweredOnce) {
  PortionBoard board(5, /*backups=*/false);
  for (int gradient = 0; gradient < 3; ++gradient) {
    board.Begin();
    std::set<int> taken;
    for (int i = 0; i < 5; ++i) taken.insert(board.Take(i % 2).value());
    EXPECT_EQ(taken.size(), 5u);
    EXPECT_FALSE(board.Take(0)) << "without backups a worker waits";
    EXPECT_TRUE(Answer(board, 0, {0, 2}));
    EXPECT_FALSE(board.over());
    EXPECT_TRUE(Answer(board, 1, {1, 3}));
    EXPECT_TRUE(Answer(board, 0, {4}));
    EXPECT_TRUE(board.over());
  }
  EXPECT_EQ(board.given_twice(), 0);
}

TEST(PortionBoardTest, WhatIsOpenGoesOutASecondTimeAndTheFirstAnswerCounts) {
  for (bool backup_is_first : {false, true}) {
    PortionBoard board(3, true);
    board.Begin();
    EXPECT_EQ(board.Take(0), 0);
    EXPECT_EQ(board.Take(1), 1);
    EXPECT_EQ(board.Take(1), 2);
    EXPECT_TRUE(Answer(board, 1, {1, 2}));
    EXPECT_EQ(board.Take(1), 0) << "worker 0 has not answered";
    EXPECT_FALSE(board.Take(2)) << "two are enough";
    EXPECT_EQ(board.given_twice(), 1);
    EXPECT_TRUE(Answer(board, backup_is_first ? 1 : 0, {0}));
    EXPECT_TRUE(board.over());
    EXPECT_FALSE(Answer(board, backup_is_first ? 0 : 1, {0})) << "it is there already";
    EXPECT_TRUE(board.over());
    board.Begin();
    EXPECT_FALSE(board.over());
    EXPECT_FALSE(Answer(board, 0, {0})) << "of the gradient before";
    EXPECT_EQ(board.Take(0), 0);
  }
}

TEST(PortionBoardTest, TheOldestGoesOutFirst) {
  PortionBoard board(4, true);
  board.Begin();
  for (int p = 0; p < 4; ++p) board.Take(p);
  EXPECT_TRUE(Answer(board, 3, {3}));
  EXPECT_EQ(board.Take(3), 0);
  EXPECT_EQ(board.Take(3), 1);
}

// Of a sum nobody can take one portion out again.
TEST(PortionBoardTest, APartThatHoldsAnAnsweredPortionDoesNotCountAndTheRestIsTakenAgain) {
  PortionBoard board(3, true);
  board.Begin();
  EXPECT_EQ(board.Take(0), 0);
  EXPECT_EQ(board.Take(0), 1);
  EXPECT_EQ(board.Take(0), 2);
  EXPECT_EQ(board.Take(1), 0);
  EXPECT_TRUE(Answer(board, 1, {0}));
  EXPECT_FALSE(Answer(board, 0, {0, 1, 2}));
  EXPECT_FALSE(board.over());
  EXPECT_EQ(board.Take(1), 1);
  EXPECT_EQ(board.Take(0), 2);
  EXPECT_TRUE(Answer(board, 1, {1}));
  EXPECT_TRUE(Answer(board, 0, {2}));
  EXPECT_TRUE(board.over());
}

TEST(PortionBoardTest, WhatAWorkerDoesNotHoldDoesNotCount) {
  PortionBoard board(3, true);
  board.Begin();
  EXPECT_EQ(board.Take(0), 0);
  EXPECT_FALSE(Answer(board, 1, {0}));
  EXPECT_FALSE(Answer(board, 1, {2}));
  EXPECT_FALSE(Answer(board, 1, {-1}));
  EXPECT_FALSE(Answer(board, 1, {3}));
  EXPECT_FALSE(Answer(board, 0, {0, 0})) << "twice in one part";
  EXPECT_EQ(board.Take(0), 0);
  EXPECT_TRUE(Answer(board, 0, {0}));
}

TEST(PortionBoardTest, NearTheEndPortionsAreAnsweredOneByOne) {
  PortionBoard board(100, true);
  board.Begin();
  EXPECT_FALSE(board.few_left(2));
  for (int i = 0; i < 90; ++i) board.Take(i % 2);
  EXPECT_TRUE(board.few_left(2));
}

}  // namespace
}  // namespace trireme
