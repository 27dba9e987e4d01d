#include "transport/group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "transport/broadcast.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

std::span<const std::byte> Bytes(const std::vector<int>& v) { return std::as_bytes(std::span(v)); }
std::span<std::byte> Bytes(std::vector<int>& v) { return std::as_writable_bytes(std::span(v)); }

TEST(Group, KeepsTheOrderOfEachTag) {
  RunRanks(2, 10, [](World& world) {
    Group& group = world.group();
    if (group.rank() == 0) {
      std::vector<std::vector<int>> values;
      for (int i = 0; i < 20; ++i) values.push_back({i});
      std::vector<Ticket> tickets;
      for (int i = 0; i < 20; ++i)
        tickets.push_back(group.Send(1, i % 2, Bytes(std::as_const(values[i]))));
      for (Ticket& ticket : tickets) ticket.Wait();
    } else {
      for (int tag : {1, 0}) {  // the other order than sent
        for (int i = tag; i < 20; i += 2) {
          std::vector<int> got(1);
          group.Receive(0, tag, Bytes(got)).Wait();
          EXPECT_EQ(got[0], i);
        }
      }
    }
  });
}

TEST(Group, CarriesLargeMessagesBothWaysAtOnce) {
  RunRanks(2, 10, [](World& world) {
    Group& group = world.group();
    const int other = 1 - group.rank();
    std::vector<int> out(1 << 20), in(1 << 20), expected(1 << 20);
    std::iota(out.begin(), out.end(), group.rank());
    std::iota(expected.begin(), expected.end(), other);
    for (int i = 0; i < 3; ++i) {
      Ticket arriving = group.Receive(other, 0, Bytes(in));
      Ticket leaving = group.Send(other, 0, Bytes(std::as_const(out)));
      arriving.Wait();
      leaving.Wait();
      EXPECT_EQ(in, expected);
    }
    EXPECT_EQ(group.volume().sent, 3u << 22);
    EXPECT_EQ(group.volume().received, 3u << 22);
  });
}

TEST(Group, RefusesAnotherLengthThanSent) {
  try {
    RunRanks(2, 10, [](World& world) {
      std::vector<int> v(world.rank() ? 3 : 2);
      if (world.rank() == 0) world.group().Send(1, 5, Bytes(std::as_const(v))).Wait();
      if (world.rank() == 1) world.group().Receive(0, 5, Bytes(v)).Wait();
    });
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("receives 12 bytes from rank 0, which sends 8"),
              std::string::npos)
        << error.what();
  }
}

TEST(Group, ASilentPeerIsNamedAfterTheDeadline) {
  const auto start = std::chrono::steady_clock::now();
  try {
    RunRanks(3, 0.1, [](World& world) {
      std::vector<int> v(1);
      // Rank 2 sends nothing; rank 0 waits for rank 1, which fails first.
      if (world.rank() == 1) world.group().Receive(2, 0, Bytes(v)).Wait();
      if (world.rank() == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        world.group().Receive(1, 0, Bytes(v)).Wait();
      }
    });
    FAIL();
  } catch (const PeerLost& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("rank 2 is lost"), std::string::npos) << what;
    EXPECT_NE(what.find("transport.timeout_s"), std::string::npos) << what;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(Group, ADroppedTicketWaitsForItsBytes) {
  RunRanks(2, 10, [](World& world) {
    Group& group = world.group();
    for (int i = 0; i < 50; ++i) {
      std::vector<int> v(1000, i);
      if (group.rank() == 0) {
        group.Send(1, 0, Bytes(std::as_const(v)));  // the vector dies right after
      } else {
        group.Receive(0, 0, Bytes(v)).Wait();
        EXPECT_EQ(v, std::vector<int>(1000, i));
      }
    }
  });
}

TEST(Group, PartsOfAGroupDoNotMixTheirMessages) {
  RunRanks(5, 10, [](World& world) {
    Group& all = world.group();
    const auto odd = all.Split(all.rank() % 2);     // 0 2 4 | 1 3
    const auto pair = odd->Split(odd->rank() / 2);  // 0 2 | 4 | 1 3
    const auto again = all.Split(0);
    EXPECT_EQ(odd->size(), all.rank() % 2 ? 2 : 3);
    EXPECT_EQ(odd->rank(), all.rank() / 2);
    EXPECT_EQ(pair->size(), all.rank() == 4 ? 1 : 2);
    EXPECT_EQ(again->rank(), all.rank());
    // The same tag in all four at once, in another order of groups at the receiver.
    std::vector<Ticket> tickets;
    std::vector<Group*> groups{&all, odd.get(), pair.get(), again.get()};
    std::vector<std::vector<int>> out(4), in(4);
    for (int g = 0; g < 4; ++g) {
      out[g] = {g * 100 + all.rank()};
      tickets.push_back(groups[g]->Send((groups[g]->rank() + 1) % groups[g]->size(), 7,
                                        Bytes(std::as_const(out[g]))));
    }
    for (int g = 3; g >= 0; --g) {
      in[g] = {-1};
      const int size = groups[g]->size(), before = (groups[g]->rank() + size - 1) % size;
      groups[g]->Receive(before, 7, Bytes(in[g])).Wait();
    }
    for (Ticket& ticket : tickets) ticket.Wait();
    EXPECT_EQ(in[0][0], (all.rank() + 4) % 5);
    EXPECT_EQ(in[3][0], 300 + (all.rank() + 4) % 5);
    const int odd_from[] = {4, 3, 0, 1, 2}, pair_from[] = {2, 3, 0, 1, 4};
    EXPECT_EQ(in[1][0], 100 + odd_from[all.rank()]);
    EXPECT_EQ(in[2][0], 200 + pair_from[all.rank()]);
  });
}

class Collectives : public testing::TestWithParam<int> {};

TEST_P(Collectives, BroadcastReachesEveryRankFromAnyRoot) {
  RunRanks(GetParam(), 10, [](World& world) {
    for (int root = 0; root < world.size(); ++root) {
      std::vector<int> v(3, world.rank() == root ? 40 + root : 0);
      Broadcast(world.group(), 0, root, Bytes(v));
      EXPECT_EQ(v, std::vector<int>(3, 40 + root));
    }
  });
}

TEST_P(Collectives, NobodyPassesABarrierBeforeAllHaveCome) {
  std::atomic<int> came = 0;
  RunRanks(GetParam(), 10, [&](World& world) {
    for (int round = 1; round <= 20; ++round) {
      ++came;
      Barrier(world.group(), 0);
      EXPECT_GE(came, round * world.size());
      Barrier(world.group(), 0);
    }
  });
}

TEST_P(Collectives, GatherKeepsTheOrderOfRanks) {
  RunRanks(GetParam(), 10, [](World& world) {
    const int root = world.size() - 1;
    const std::vector<double> mine(world.rank(), world.rank() + 0.5);  // rank 0: nothing
    const auto all = Gather(world.group(), 0, root, mine);
    EXPECT_EQ(all.size(), world.rank() == root ? world.size() : 0u);
    for (size_t r = 0; r < all.size(); ++r) EXPECT_EQ(all[r], std::vector<double>(r, r + 0.5));
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Collectives, testing::Values(1, 2, 3, 4, 5, 8));

}  // namespace
}  // namespace trireme
