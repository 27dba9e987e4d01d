// Sums over groups that do more, or less, than the usual: one with a sum of its own, one that dies.
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "base/clock.h"
#include "transport/collective/all_reduce.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

// A group that passes everything on.
class Wrapped : public Group {
 public:
  explicit Wrapped(Group& group) : group_(group) {}
  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  Ticket Send(int to, Tag tag, std::span<const std::byte> bytes) override {
    return group_.Send(to, tag, bytes);
  }
  Ticket Receive(int from, Tag tag, std::span<std::byte> bytes) override {
    return group_.Receive(from, tag, bytes);
  }
  void Abort(std::string_view reason) noexcept override { group_.Abort(reason); }
  Volume volume() const override { return group_.volume(); }

 private:
  Group& group_;
};

class WithNativeSum : public Wrapped {
 public:
  using Wrapped::Wrapped;
  bool NativeSum(std::span<float> values) override {
    for (float& value : values) value *= float(size());
    return true;
  }
};

std::vector<std::string> UsableNames(Group& group, WireType wire) {
  std::vector<std::string> names;
  for (const AllReduceAlgorithm* algorithm : UsableAllReduces(group, wire)) {
    names.push_back(algorithm->name);
  }
  return names;
}

TEST(NativeSum, IsUsedWhereThereIsOne) {
  const auto& native = FindAllReduce("native");
  const std::vector<std::string> ours{"ring", "halving-doubling", "tree", "two-level", "chain"};
  std::vector<std::string> with = ours;
  with.push_back("native");
  RunRanks(2, 60, [&](World& world) {
    std::vector<float> v(10, 1.5f), scratch(kAllReduceScratch);
    EXPECT_EQ(UsableNames(world.group(), WireType::kF32), ours);
    HostGroups plain(world.group());
    EXPECT_THROW(AllReduceSum(native, WireType::kF32, plain, 0, v, scratch), UsageError);
    EXPECT_EQ(v, std::vector<float>(10, 1.5f));

    WithNativeSum group(world.group());
    HostGroups hosts(group);
    EXPECT_EQ(UsableNames(group, WireType::kF32), with);
    EXPECT_EQ(UsableNames(group, WireType::kBf16), ours);
    AllReduceSum(native, WireType::kF32, hosts, 0, v, scratch);
    EXPECT_EQ(v, std::vector<float>(10, 3.0f));
    EXPECT_THROW(AllReduceSum(native, WireType::kBf16, hosts, 0, v, scratch), UsageError);
  });
}

// Fails at a certain transfer, as a rank does whose process is killed: the others hear of it.
class Mortal : public Wrapped {
 public:
  Mortal(Group& group, int lives) : Wrapped(group), lives_(lives) {}
  Ticket Send(int to, Tag tag, std::span<const std::byte> bytes) override {
    Live();
    return Wrapped::Send(to, tag, bytes);
  }
  Ticket Receive(int from, Tag tag, std::span<std::byte> bytes) override {
    Live();
    return Wrapped::Receive(from, tag, bytes);
  }

 private:
  void Live() {
    if (lives_-- > 0) return;
    Abort("killed");
    throw Error("killed");
  }
  int lives_;
};

TEST(AllReduce, ADyingRankEndsTheSumEverywhereAtOnce) {
  constexpr int kRanks = 5;
  const std::vector<int> host_of{0, 0, 0, 1, 1};
  for (const AllReduceAlgorithm& algorithm : AllReduceAlgorithms()) {
    if (!algorithm.bf16) continue;  // native: the transport's business
    for (WireType wire : {WireType::kF32, WireType::kBf16}) {
      for (int lives : {0, 1, 3, 6}) {
        std::atomic<int> lost = 0, done = 0;
        const int victim = lives % kRanks;
        const auto sums = [&](World& world) {
          Mortal group(world.group(), world.rank() == victim ? lives + 16 : 1 << 30);
          std::vector<float> v(400'000, 1.0f), scratch(kAllReduceScratch);
          try {
            HostGroups hosts(group, host_of);  // 16 transfers
            // Again and again: in one sum the victim may not come to so many.
            for (int i = 0; i < 100; ++i) AllReduceSum(algorithm, wire, hosts, 0, v, scratch);
            ++done;
          } catch (const PeerLost& error) {
            ++lost;
            EXPECT_NE(
                std::string(error.what()).find(fmt::format("rank {} is lost: killed", victim)),
                std::string::npos)
                << error.what();
          }
        };
        EXPECT_THROW(RunRanks(kRanks, /*timeout_s=*/3600, sums), Error);  // nobody waits for it
        EXPECT_EQ(lost, kRanks - 1) << algorithm.name;
        EXPECT_EQ(done, 0) << algorithm.name;
      }
    }
  }
}

}  // namespace
}  // namespace trireme
