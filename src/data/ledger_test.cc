#include "data/ledger.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(Ledger, NamesTheSamplesOfPositionsAndGoesOnInTheSameFile) {
  const TemporaryDirectory folder;
  const std::string directory = folder / "new/ledger";
  const Order order(7, 100, true);
  Ledger(directory, 2).Note(5, {.epoch = 1, .begin = 10, .end = 12}, order);
  Ledger(directory, 2).Note(6, {.epoch = 1, .begin = 12, .end = 13}, order);
  EXPECT_EQ(ReadFile(directory + "/worker-2.csv"),
            fmt::format("step,epoch,position,sample\n5,1,10,{}\n5,1,11,{}\n6,1,12,{}\n",
                        order.At(1, 10), order.At(1, 11), order.At(1, 12)));
}

}  // namespace
}  // namespace trireme
