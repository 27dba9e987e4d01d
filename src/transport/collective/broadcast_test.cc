#include "transport/collective/broadcast.h"

#include <gtest/gtest.h>

#include <atomic>

#include "transport/threads/run.h"

namespace trireme {
namespace {

// Differ from rank to rank and have no short period.
std::vector<std::byte> BytesOf(int rank, size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = std::byte(i + i / 251 * 7 + i / 65'521 + rank * 13);
  return bytes;
}

class Collectives : public testing::TestWithParam<int> {};

TEST_P(Collectives, NobodyPassesABarrierBeforeAllHaveCome) {
  std::atomic<int> came = 0;
  RunRanks(GetParam(), 60, [&](World& world) {
    for (int round = 1; round <= 20; ++round) {
      ++came;
      Barrier(world.group(), 0);
      EXPECT_GE(came, round * world.size());
      Barrier(world.group(), 0);
    }
  });
}

// Lengths for the tree and for the chain.
TEST_P(Collectives, ABroadcastBringsAnyLengthFromAnyRoot) {
  RunRanks(GetParam(), 60, [&](World& world) {
    for (int root = 0; root < world.size(); ++root) {
      for (size_t n : {size_t(0), size_t(1), size_t(1000), size_t(5'000'011)}) {
        if (n > 1000 && root > 1) continue;
        const auto expected = BytesOf(root, n);
        auto bytes = world.rank() == root ? expected : std::vector<std::byte>(n);
        Broadcast(world.group(), 0, root, bytes);
        EXPECT_TRUE(bytes == expected) << n;

        auto unknown = world.rank() == root ? expected : BytesOf(99, 17);
        BroadcastBytes(world.group(), 1, root, unknown);
        EXPECT_TRUE(unknown == expected) << n;
      }
    }
  });
}

TEST_P(Collectives, ALongBroadcastIsSentOnceByEachRank) {
  RunRanks(GetParam(), 60, [&](World& world) {
    const size_t n = 8'000'000;
    std::vector<std::byte> bytes(n);
    const int root = world.size() / 2;
    Broadcast(world.group(), 0, root, bytes);
    const bool last = (world.rank() + 1) % world.size() == root;
    EXPECT_EQ(world.group().volume().sent, last ? 0 : n);
    EXPECT_EQ(world.group().volume().received, world.rank() == root ? 0 : n);
  });
}

TEST_P(Collectives, AGatherBringsAllLengths) {
  RunRanks(GetParam(), 60, [&](World& world) {
    for (int root = 0; root < world.size(); ++root) {
      const size_t n = size_t(world.rank()) * 30'000;  // nothing from rank 0
      const auto all = GatherBytes(world.group(), 0, root, BytesOf(world.rank(), n));
      ASSERT_EQ(all.size(), world.rank() == root ? size_t(world.size()) : 0);
      for (size_t r = 0; r < all.size(); ++r) {
        EXPECT_TRUE(all[r] == BytesOf(int(r), r * 30'000)) << r;
      }
      const std::vector<double> mine(size_t(world.rank()), 0.5);
      const auto doubles = Gather(world.group(), 0, root, mine);
      for (size_t r = 0; r < doubles.size(); ++r) EXPECT_EQ(doubles[r], std::vector(r, 0.5));
    }
  });
}

TEST_P(Collectives, AllGatherBringsEveryRecordToEveryRank) {
  RunRanks(GetParam(), 60, [&](World& world) {
    for (size_t n : {size_t(0), size_t(1), size_t(24)}) {
      const uint64_t before = world.group().volume().sent;
      const auto all = AllGatherBytes(world.group(), 0, BytesOf(world.rank(), n));
      EXPECT_EQ(world.group().volume().sent - before, n * size_t(world.size() - 1));
      std::vector<std::byte> expected;
      for (int r = 0; r < world.size(); ++r) {
        const auto one = BytesOf(r, n);
        expected.insert(expected.end(), one.begin(), one.end());
      }
      EXPECT_EQ(all, expected);
    }
    const auto squares = AllGather(world.group(), 0, double(world.rank()) * world.rank());
    for (int r = 0; r < world.size(); ++r) EXPECT_EQ(squares[r], double(r) * r);
  });
}

#ifdef TRIREME_WATCHES_THREADS  // three shapes of a group show the races that there are
INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, testing::Values(2, 3, 6));
#else
INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, testing::Values(1, 2, 3, 4, 5, 8, 9));
#endif

std::string WhatOf(FunctionRef<void(World&)> fn) {
  try {
    RunRanks(3, 60, fn);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// A length is believed only up to a limit: here a rank says that it will send 2^40 bytes.
TEST(CollectiveLengths, AreChecked) {
  EXPECT_EQ(WhatOf([](World& world) {
              if (world.rank() == 2) {
                const uint64_t length = uint64_t{1} << 40;
                world.group().Send(0, 0, std::as_bytes(std::span(&length, 1))).Wait();
                Barrier(world.group(), 1);
              } else {
                GatherBytes(world.group(), 0, 0, {});
              }
            }),
            "rank 0 of 3: 1099511627776 bytes from rank 2 are too many; at most 1073741824 are "
            "allowed (rank 0 of 3)");
  EXPECT_EQ(WhatOf([](World& world) {
              std::vector<std::byte> bytes(world.rank() == 1 ? 11 : 0);
              BroadcastBytes(world.group(), 0, 1, bytes, 10);
            }),
            "rank 1 of 3: 11 bytes from rank 1 are too many; at most 10 are allowed (rank 1 of 3)");
}

}  // namespace
}  // namespace trireme
