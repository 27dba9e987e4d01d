#include "transport/collective/all_reduce.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "base/function_ref.h"
#include "base/random.h"
#include "transport/collective/broadcast.h"
#include "transport/collective/element.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

// Whole numbers whose sum is below 256: exact in any order, also as bf16.
std::vector<float> WholeNumbers(int rank, size_t n) {
  std::vector<float> v(n);
  const Random random(rank);
  for (size_t i = 0; i < n; ++i) v[i] = float(random.Bits(i) % 28);
  return v;
}

// Both signs, 32 powers of two.
std::vector<float> AnyNumbers(int rank, size_t n) {
  std::vector<float> v(n);
  const Random random(100 + rank);
  for (size_t i = 0; i < n; ++i) {
    const auto bits = uint32_t(random.Bits(i));
    v[i] = std::bit_cast<float>((bits & 0x8fffffffu) + (112u << 23));
  }
  return v;
}

// Ways to spread ranks over hosts: one, two or three in turn, one and the rest, all alone.
std::vector<std::vector<int>> HostLists(int ranks) {
  std::vector<std::vector<int>> lists(5, std::vector<int>(ranks));
  for (int r = 0; r < ranks; ++r) {
    lists[1][r] = r % 2;
    lists[2][r] = r % 3 * 7;
    lists[3][r] = r > 0;
    lists[4][r] = -r;
  }
  return lists;
}

struct Way {
  const AllReduceAlgorithm& algorithm;
  WireType wire;
  const std::vector<int>& hosts;
  std::string Name() const {
    return fmt::format("{} wire {} hosts of ranks {}", algorithm.name, int(wire),
                       testing::PrintToString(hosts));
  }
};

// Calls fn for every algorithm that all transports have, on each wire; two-level on all lists.
void EachWay(int ranks, FunctionRef<void(const Way&)> fn) {
  const auto lists = HostLists(ranks);
  for (const AllReduceAlgorithm& algorithm : AllReduceAlgorithms()) {
    const std::string name = algorithm.name;
    if (name == "native") continue;
    for (WireType wire : {WireType::kF32, WireType::kBf16}) {
      for (size_t l = 0; l < (name == "two-level" ? lists.size() : 1); ++l) {
        fn({algorithm, wire, lists[l]});
      }
    }
  }
}

class AllReduceTest : public testing::TestWithParam<int> {
 protected:
  // fn on all ranks, with scratch memory full of rubbish.
  void OnRanks(const Way& way, FunctionRef<void(HostGroups&, std::span<float> scratch)> fn) {
    RunRanks(GetParam(), 60, [&](World& world) {
      HostGroups hosts(world.group(), way.hosts);
      std::vector<float> scratch(kAllReduceScratch, std::numeric_limits<float>::quiet_NaN());
      fn(hosts, scratch);
    });
  }
};

TEST_P(AllReduceTest, SumsAnyLengthExactly) {
  const int ranks = GetParam();
  std::vector<size_t> lengths{0, 1, 2, 7, size_t(ranks - 1), 1000, 70'001, 140'003};
  for (int i = 0; i < 4; ++i) lengths.push_back(Random(ranks).Bits(i) % 30'000);
  const size_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::vector<std::vector<float>> inputs;  // of each rank; a shorter one begins the same way
  std::vector<float> sum(longest);
  for (int r = 0; r < ranks; ++r) {
    inputs.push_back(WholeNumbers(r, longest));
    for (size_t i = 0; i < longest; ++i) sum[i] += inputs.back()[i];
  }
  EachWay(ranks, [&](const Way& way) {
    OnRanks(way, [&](HostGroups& hosts, std::span<float> scratch) {
      const auto& input = inputs[hosts.all().rank()];
      for (const size_t n : lengths) {
        std::vector<float> v(input.begin(), input.begin() + n);
        AllReduceSum(way.algorithm, way.wire, hosts, 3, v, scratch);
        EXPECT_EQ(std::memcmp(v.data(), sum.data(), n * sizeof(float)), 0)
            << way.Name() << ", length " << n;
      }
    });
  });
}

TEST_P(AllReduceTest, GivesTheSameBitsOnEveryRankAndOneCloseToTheSum) {
  const size_t n = 80'021;
  std::vector<double> exact(n), magnitude(n);
  std::vector<std::vector<float>> inputs;
  for (int r = 0; r < GetParam(); ++r) {
    inputs.push_back(AnyNumbers(r, n));
    for (size_t i = 0; i < n; ++i) {
      exact[i] += inputs.back()[i];
      magnitude[i] += std::abs(inputs.back()[i]);
    }
  }
  EachWay(GetParam(), [&](const Way& way) {
    std::vector<std::vector<float>> results(GetParam());
    OnRanks(way, [&](HostGroups& hosts, std::span<float> scratch) {
      auto& v = results[hosts.all().rank()];
      v = inputs[hosts.all().rank()];
      AllReduceSum(way.algorithm, way.wire, hosts, 0, v, scratch);
    });
    for (const auto& other : results) {
      ASSERT_EQ(std::memcmp(other.data(), results[0].data(), n * sizeof(float)), 0) << way.Name();
    }
    // Half a unit of the last place for each time that a number is rounded.
    const double unit = way.wire == WireType::kBf16 ? 0x1p-8 : 0x1p-24;
    size_t far = 0;
    for (size_t i = 0; i < n; ++i) {
      far += !(std::abs(results[0][i] - exact[i]) <= unit * GetParam() * magnitude[i]);
    }
    EXPECT_EQ(far, 0u) << way.Name();
  });
}

TEST_P(AllReduceTest, AChainAddsInTheOrderOfRanks) {
  const size_t n = 150'001;
  for (WireType wire : {WireType::kF32, WireType::kBf16}) {
    const auto travel = [&](float x) {
      return wire == WireType::kBf16 && GetParam() > 1 ? FromBfloat16(ToBfloat16(x)) : x;
    };
    std::vector<float> sum = AnyNumbers(0, n);
    for (int r = 1; r < GetParam(); ++r) {
      const auto v = AnyNumbers(r, n);
      for (size_t i = 0; i < n; ++i) sum[i] = travel(sum[i]) + v[i];
    }
    for (float& x : sum) x = travel(x);
    OnRanks({FindAllReduce("chain"), wire, HostLists(GetParam())[0]},
            [&](HostGroups& hosts, std::span<float> scratch) {
              auto v = AnyNumbers(hosts.all().rank(), n);
              AllReduceSum(FindAllReduce("chain"), wire, hosts, 0, v, scratch);
              EXPECT_EQ(std::memcmp(v.data(), sum.data(), n * sizeof(float)), 0);
            });
  }
}

TEST_P(AllReduceTest, SendsWhatItsCostSays) {
  const size_t n = 2520 * 63;  // stretches of stretches are whole for 1 ... 9 ranks
  EachWay(GetParam(), [&](const Way& way) {
    std::mutex mutex;
    uint64_t most = 0;
    RankShape shape;
    OnRanks(way, [&](HostGroups& hosts, std::span<float> scratch) {
      std::vector<float> v(n, 1.0f);
      Barrier(hosts.all(), 1);  // what Split sends is counted before
      const uint64_t before = hosts.all().volume().sent;
      AllReduceSum(way.algorithm, way.wire, hosts, 0, v, scratch);
      const uint64_t sent = hosts.all().volume().sent - before;
      std::lock_guard lock(mutex);
      most = std::max(most, sent);
      shape = hosts.shape();
    });
    const AllReduceCost cost = way.algorithm.cost(shape, double(n * BytesOf(way.wire)));
    EXPECT_NEAR(double(most), cost.sent, 1e-6 * cost.sent) << way.Name();
  });
}

TEST_P(AllReduceTest, NansReachEveryRank) {
  EachWay(GetParam(), [&](const Way& way) {
    OnRanks(way, [&](HostGroups& hosts, std::span<float> scratch) {
      std::vector<float> v(100, float(hosts.all().rank()));
      const int last = hosts.all().size() - 1;
      if (hosts.all().rank() == last) v[7] = std::numeric_limits<float>::signaling_NaN();
      if (hosts.all().rank() == last) v[8] = std::numeric_limits<float>::infinity();
      AllReduceSum(way.algorithm, way.wire, hosts, 0, v, scratch);
      EXPECT_TRUE(std::isnan(v[7])) << way.Name();
      EXPECT_EQ(v[8], std::numeric_limits<float>::infinity()) << way.Name();
      EXPECT_EQ(v[9], float(last * (last + 1)) / 2) << way.Name();
    });
  });
}

TEST_P(AllReduceTest, SumsDoubles) {
  RunRanks(GetParam(), 60, [](World& world) {
    std::vector<double> v{1e-9 + world.rank(), 3, -1};
    AllReduceSum(world.group(), 0, v);
    const double n = world.size();
    EXPECT_NEAR(v[0], n * 1e-9 + n * (n - 1) / 2, 1e-12);
    EXPECT_EQ(v[1], 3 * n);
    EXPECT_EQ(v[2], -n);
  });
}

#ifdef TRIREME_WATCHES_THREADS  // three shapes of a group show the races that there are
INSTANTIATE_TEST_SUITE_P(Ranks, AllReduceTest, testing::Values(2, 3, 6));
#else
INSTANTIATE_TEST_SUITE_P(Ranks, AllReduceTest, testing::Range(1, 10));
#endif

TEST(AllReduceList, NamesWhatThereIs) {
  EXPECT_STREQ(FindAllReduce("halving-doubling").name, "halving-doubling");
  try {
    FindAllReduce("chian");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(
        error.what(),
        "all-reduce \"chian\" is unknown; use ring, halving-doubling, tree, two-level, chain, "
        "native; did you mean chain?");
  }
}

TEST(HostGroups, JoinThoseOfAHostAndOneOfEachHost) {
  RunRanks(5, 60, [](World& world) {
    const std::vector<int> host_of{8, 4, 8, 4, 8};
    HostGroups hosts(world.group(), host_of);
    EXPECT_EQ(hosts.shape().hosts, 2);
    EXPECT_EQ(hosts.shape().fewest, 2);
    EXPECT_EQ(hosts.shape().most, 3);
    EXPECT_EQ(hosts.inner().size(), world.rank() % 2 ? 2 : 3);
    EXPECT_EQ(hosts.inner().rank(), world.rank() / 2);
    if (world.rank() == 4) {
      EXPECT_EQ(hosts.outer(), nullptr);
    } else {
      ASSERT_NE(hosts.outer(), nullptr);
      EXPECT_EQ(hosts.outer()->size(), 2);
      EXPECT_EQ(hosts.outer()->rank(), world.rank() % 2);
    }
  });
}

}  // namespace
}  // namespace trireme
