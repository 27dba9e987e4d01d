#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "transport/check/conformance.h"
#include "transport/collective/all_reduce.h"
#include "transport/collective/broadcast.h"
#include "transport/shared_memory.h"

namespace trireme {
namespace {

std::span<const std::byte> Bytes(const std::vector<int>& v) { return std::as_bytes(std::span(v)); }
std::span<std::byte> Bytes(std::vector<int>& v) { return std::as_writable_bytes(std::span(v)); }
Ticket Send(Group& group, int to, Tag tag, const std::vector<int>& v) {
  return group.Send(to, tag, Bytes(v));
}

void KeepsTheOrderOfEachTag(World& world) {
  Group& group = world.group();
  std::vector<std::vector<int>> values;
  for (int i = 0; i < 20; ++i) values.push_back({i});
  if (group.rank() == 0) {
    std::vector<Ticket> tickets;
    for (int i = 0; i < 20; ++i) tickets.push_back(Send(group, 1, i % 2, values[i]));
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
}

// The receiver looks while the sender posts: pairs of messages, so that it often finds none and
// then, in one look, both.
void KeepsTheOrderWhileItIsWritten(World& world) {
  Group& group = world.group();
  const Stopwatch watch;
  std::vector<int> a(1), b(1), more(1);
  for (int i = 0;; i += 2) {
    if (group.rank() == 0) {
      a[0] = i;
      b[0] = i + 1;
      Ticket first = Send(group, 1, 7, a), second = Send(group, 1, 7, b);
      first.Wait();
      second.Wait();
      group.Receive(1, 8, Bytes(more)).Wait();
    } else {
      for (int k : {0, 1}) {
        group.Receive(0, 7, Bytes(a)).Wait();
        ASSERT_EQ(a[0], i + k);
      }
      more[0] = watch.seconds() < 0.5;
      Send(group, 0, 8, more).Wait();
    }
    if (!more[0]) return;
  }
}

void CarriesLargeMessagesBothWaysAtOnce(World& world) {
  Group& group = world.group();
  const int other = 1 - group.rank();
  const Volume before = group.volume();
  std::vector<int> out(5'000'011), in(out.size()), expected(out.size());
  std::iota(out.begin(), out.end(), group.rank());
  std::iota(expected.begin(), expected.end(), other);
  for (int i = 0; i < 3; ++i) {
    Ticket arriving = group.Receive(other, 0, Bytes(in));
    Ticket leaving = Send(group, other, 0, out);
    arriving.Wait();
    leaving.Wait();
    EXPECT_TRUE(in == expected);
    std::fill(in.begin(), in.end(), -1);
  }
  EXPECT_EQ(group.volume().sent - before.sent, 12 * out.size());
  EXPECT_EQ(group.volume().received - before.received, 12 * out.size());
}

// Several senders at once, any of which may come first: a receive is posted for each.
void ManySendToOne(World& world) {
  Group& group = world.group();
  for (int round = 0; round < 10; ++round) {
    if (group.rank() > 0) {
      Send(group, 0, 3, std::vector<int>(1000 * group.rank(), group.rank() + round)).Wait();
      continue;
    }
    std::vector<std::vector<int>> got(group.size());
    std::vector<Ticket> tickets;
    for (int r = group.size() - 1; r > 0; --r) {
      got[r].resize(1000 * r);
      tickets.push_back(group.Receive(r, 3, Bytes(got[r])));
    }
    for (Ticket& ticket : tickets) ticket.Wait();
    for (int r = 1; r < group.size(); ++r) EXPECT_EQ(got[r], std::vector<int>(1000 * r, r + round));
  }
}

void EmptyMessagesCount(World& world) {
  for (int i = 0; i < 5; ++i) {
    if (world.rank() == 0) world.group().Send(1, 2, {}).Wait();
    if (world.rank() == 1) world.group().Receive(0, 2, {}).Wait();
  }
}

void ARankMaySendToItself(World& world) {
  std::vector<int> in(3), out{1, 2, world.rank()};
  Ticket arriving = world.group().Receive(world.rank(), 4, Bytes(in));
  Send(world.group(), world.rank(), 4, out).Wait();
  arriving.Wait();
  EXPECT_EQ(in, out);
}

void RefusesAnotherLengthThanSent(World& world) {
  std::vector<int> v(world.rank() ? 3 : 2);
  if (world.rank() == 0) Send(world.group(), 1, 5, v).Wait();
  if (world.rank() == 1) world.group().Receive(0, 5, Bytes(v)).Wait();
  Barrier(world.group(), 6);  // the job ends with rank 1's error
}

// Is there and says nothing to others, until the job ends: it waits for nobody, so that only those
// who wait for it may be the ones who give up.
void StaySilent(World& world) {
  for (std::vector<int> out(1), in(1);;) {
    Ticket arriving = world.group().Receive(world.rank(), 2, Bytes(in));
    Send(world.group(), world.rank(), 2, out).Wait();
    arriving.Wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void ASilentPeerIsNamed(World& world) {
  std::vector<int> v(1);
  if (world.rank() == 1) world.group().Receive(2, 0, Bytes(v)).Wait();
  StaySilent(world);
}

void ARankThatThrowsEndsAll(World& world) {
  if (world.rank() == 2) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    throw Error("disk full");
  }
  Barrier(world.group(), 0);  // never complete
}

void AbortWakesWaitingCalls(World& world) {
  if (world.rank() == 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    world.group().Abort("the boss went home");
  }
  std::vector<int> v(1);
  world.group().Receive((world.rank() + 1) % world.size(), 0, Bytes(v)).Wait();
}

void ADroppedTicketWaitsForItsBytes(World& world) {
  Group& group = world.group();
  for (int i = 0; i < 50; ++i) {
    std::vector<int> v(1000, i);
    if (group.rank() == 0) {
      Send(group, 1, 0, v);  // the vector dies right after
    } else {
      group.Receive(0, 0, Bytes(v)).Wait();
      EXPECT_EQ(v, std::vector<int>(1000, i));
    }
  }
}

void PartsOfAGroupDoNotMixTheirMessages(World& world) {
  Group& all = world.group();
  const auto odd = all.Split(all.rank() % 2);     // 0 2 4 | 1 3
  const auto pair = odd->Split(odd->rank() / 2);  // 0 2 | 4 | 1 3
  const auto again = all.Split(0);
  EXPECT_EQ(odd->size(), all.rank() % 2 ? 2 : 3);
  EXPECT_EQ(odd->rank(), all.rank() / 2);
  EXPECT_EQ(pair->size(), all.rank() == 4 ? 1 : 2);
  EXPECT_EQ(again->rank(), all.rank());
  EXPECT_EQ(all.Split(0, -all.rank())->rank(), 4 - all.rank());
  // The same tag in all four at once, in another order of groups at the receiver.
  std::vector<Ticket> tickets;
  std::vector<Group*> groups{&all, odd.get(), pair.get(), again.get()};
  std::vector<std::vector<int>> out(4), in(4);
  for (int g = 0; g < 4; ++g) {
    out[g] = {g * 100 + all.rank()};
    tickets.push_back(Send(*groups[g], (groups[g]->rank() + 1) % groups[g]->size(), 7, out[g]));
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
}

// Two threads of a rank, each with its own tag.
void ThreadsOfARankShareAGroup(World& world) {
  Group& group = world.group();
  const auto talk = [&](Tag tag) {
    const int next = (group.rank() + 1) % group.size();
    const int before = (group.rank() + group.size() - 1) % group.size();
    for (int i = 0; i < 200; ++i) {
      std::vector<int> out(i, tag * 1000 + group.rank()), in(i);
      Ticket arriving = group.Receive(before, tag, Bytes(in));
      Send(group, next, tag, out).Wait();
      arriving.Wait();
      EXPECT_EQ(in, std::vector<int>(i, tag * 1000 + before));
    }
  };
  std::jthread other([&] { talk(9); });
  talk(8);
}

void CollectivesWork(World& world) {
  Group& group = world.group();
  for (int root = 0; root < group.size(); ++root) {
    std::vector<int> v(3, group.rank() == root ? 40 + root : 0);
    Broadcast(group, 0, root, Bytes(v));
    EXPECT_EQ(v, std::vector<int>(3, 40 + root));
  }
  for (size_t n : {0, 1, 2, 7, 1000, 300'007}) {
    std::vector<float> v(n), scratch(kAllReduceScratch);
    std::iota(v.begin(), v.end(), float(group.rank()));
    AllReduceSum(group, 1, v, scratch);
    const int ranks = group.size();
    for (size_t i = 0; i < n; ++i) {
      ASSERT_NEAR(v[i], float(ranks) * float(i) + float(ranks * (ranks - 1)) / 2, 1e-6 * v[i]);
    }
  }
  const std::vector<double> mine(group.rank(), group.rank() + 0.5);  // rank 0: nothing
  const auto all = Gather(group, 2, group.size() - 1, mine);
  for (size_t r = 0; r < all.size(); ++r) EXPECT_EQ(all[r], std::vector<double>(r, r + 0.5));
  for (int round = 0; round < 20; ++round) Barrier(group, 3);
}

// Where ranks share memory: the sum is a sum in order over ranks and parts, to the bit.
void SharedMemorySums(World& world) {
  SharedMemory* memory = world.group().shared_memory();
  if (!memory) return;
  const int ranks = world.size();
  const auto parts_of = [](int rank) { return rank == 1 ? 0 : rank == 2 ? 20 : 2; };
  const auto value = [](int rank, int part, size_t i) {
    return float(std::sin(double(i) * 0.7 + rank * 100 + part) * std::exp(part));
  };
  for (size_t n : {size_t(0), size_t(1), size_t(17), size_t(4099), size_t(100'003)}) {
    std::vector<std::span<float>> mine;
    for (int p = 0; p < parts_of(world.rank()); ++p) {
      mine.push_back(memory->Allocate(n));
      for (size_t i = 0; i < n; ++i) mine.back()[i] = value(world.rank(), p, i);
    }
    const std::span<float> into = mine.empty() ? memory->Allocate(n) : mine[0];
    EXPECT_TRUE(memory->SumInOrder(mine, into)) << n;
    for (size_t i = 0; i < n; ++i) {
      float expected = 0;
      bool begun = false;
      for (int r = 0; r < ranks; ++r) {
        for (int p = 0; p < parts_of(r); ++p) {
          expected = begun ? expected + value(r, p, i) : value(r, p, i);
          begun = true;
        }
      }
      ASSERT_EQ(into[i], expected) << n << " " << i;
    }
  }
}

// Whoever adds a value that is not finite, and whoever brought it: all hear of it, of this sum
// only.
void SeesWhatIsNotFinite(Group& group) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kHuge = 3e38f;  // twice it is no float
  for (size_t n : {size_t(1), size_t(50), size_t(4099)}) {
    const std::span<float> values = group.shared_memory()->Allocate(n);
    const auto sum_is_finite = [&](int spoiler, size_t at, float bad) {
      for (size_t i = 0; i < n; ++i) values[i] = i == at ? kHuge : float(group.rank());
      if (group.rank() != 0) values[at] = 1;
      if (group.rank() == spoiler) values[at] = bad;
      return group.shared_memory()->SumInOrder({{values}}, values);
    };
    for (size_t at : {size_t(0), n / 3, n / 2, n - 1}) {
      for (int spoiler = 0; spoiler < group.size(); ++spoiler) {
        for (float bad : {std::numeric_limits<float>::quiet_NaN(), kInf, -kInf}) {
          EXPECT_FALSE(sum_is_finite(spoiler, at, bad)) << bad << " at " << at << " of " << n;
        }
        EXPECT_TRUE(sum_is_finite(spoiler, at, 2)) << at << " of " << n;
      }
      EXPECT_FALSE(sum_is_finite(group.size() - 1, at, kHuge)) << at << " of " << n;
    }
  }
}

void TheCommonsSeeWhatIsNotFinite(World& world) {
  if (!world.group().shared_memory()) return;
  SeesWhatIsNotFinite(world.group());
  SeesWhatIsNotFinite(*world.group().Split(0, -world.rank()));  // a part sums in another way
}

void TheCommonsMissARank(World& world) {
  SharedMemory* memory = world.group().shared_memory();
  if (!memory) throw Error("rank 1 is lost: there is no shared memory to wait in");
  const std::span<float> values = memory->Allocate(100);
  if (world.rank() == 0) memory->SumInOrder({{values}}, values);
  StaySilent(world);
}

void LongBroadcastsAndRecordsArrive(World& world) {
  Group& group = world.group();
  for (int root = 0; root < group.size(); ++root) {
    std::vector<int> v(1'000'003, group.rank() == root ? 40 + root : 0);
    Broadcast(group, 0, root, Bytes(v));
    EXPECT_TRUE(v == std::vector<int>(v.size(), 40 + root));
    std::vector<std::byte> text(group.rank() == root ? 1000 + root : 3, std::byte(root));
    BroadcastBytes(group, 1, root, text);
    EXPECT_EQ(text, std::vector<std::byte>(1000 + root, std::byte(root)));
  }
  const auto squares = AllGather(group, 2, group.rank() * group.rank());
  for (int r = 0; r < group.size(); ++r) EXPECT_EQ(squares[r], r * r);
}

// On two hosts, one with more ranks than the other. Whole numbers: exact in any order, also as
// bf16.
void EveryAllReduceSums(World& world) {
  Group& group = world.group();
  const int ranks = group.size();
  std::vector<int> host_of(ranks);
  for (int r = 0; r < ranks; ++r) host_of[r] = r < ranks / 2 ? 0 : 1;
  HostGroups hosts(group, host_of);
  std::vector<float> scratch(kAllReduceScratch);
  for (WireType wire : {WireType::kF32, WireType::kBf16}) {
    for (const AllReduceAlgorithm* algorithm : UsableAllReduces(group, wire)) {
      for (size_t n : {0, 1, 4, 1000, 150'001}) {
        std::vector<float> v(n), expected(n);
        for (size_t i = 0; i < n; ++i) {
          v[i] = float(i % 16) + float(group.rank());
          expected[i] = float(ranks) * float(i % 16) + float(ranks * (ranks - 1)) / 2;
        }
        AllReduceSum(*algorithm, wire, hosts, 1, v, scratch);
        EXPECT_TRUE(v == expected) << algorithm->name << ", wire " << int(wire) << ", length " << n;
      }
    }
  }
}

constexpr ConformanceCase kGroupCases[] = {
    {"KeepsTheOrderOfEachTag", 2, KeepsTheOrderOfEachTag},
    {"KeepsTheOrderWhileItIsWritten", 2, KeepsTheOrderWhileItIsWritten},
    {"CarriesLargeMessagesBothWaysAtOnce", 2, CarriesLargeMessagesBothWaysAtOnce},
    {"ManySendToOne", 4, ManySendToOne},
    {"EmptyMessagesCount", 2, EmptyMessagesCount},
    {"ARankMaySendToItself", 2, ARankMaySendToItself},
    {.name = "RefusesAnotherLengthThanSent",
     .ranks = 2,
     .run = RefusesAnotherLengthThanSent,
     .error = "expects 12 bytes from rank 0, which sends 8"},
    {.name = "ASilentPeerIsNamed",
     .ranks = 3,
     .run = ASilentPeerIsNamed,
     .timeout_s = 1,
     .error = "rank 2 is lost"},
    {.name = "ARankThatThrowsEndsAll",
     .ranks = 4,
     .run = ARankThatThrowsEndsAll,
     .error = "disk full (rank 2 of 4)"},
    {.name = "AbortWakesWaitingCalls",
     .ranks = 3,
     .run = AbortWakesWaitingCalls,
     .error = "rank 1 is lost: the boss went home"},
    {"ADroppedTicketWaitsForItsBytes", 2, ADroppedTicketWaitsForItsBytes},
    {"PartsOfAGroupDoNotMixTheirMessages", 5, PartsOfAGroupDoNotMixTheirMessages},
    {"ThreadsOfARankShareAGroup", 3, ThreadsOfARankShareAGroup},
    {"SharedMemorySumsFor2", 2, SharedMemorySums},
    {"SharedMemorySumsFor4", 4, SharedMemorySums},
    {"TheCommonsSeeWhatIsNotFinite", 3, TheCommonsSeeWhatIsNotFinite},
    {.name = "TheCommonsMissARank",
     .ranks = 3,
     .run = TheCommonsMissARank,
     .timeout_s = 0.5,
     .error = "rank 1 is lost"},
    {"CollectivesWorkFor1", 1, CollectivesWork},
    {"CollectivesWorkFor2", 2, CollectivesWork},
    {"CollectivesWorkFor3", 3, CollectivesWork},
    {"CollectivesWorkFor4", 4, CollectivesWork},
    {"CollectivesWorkFor5", 5, CollectivesWork},
    {"LongBroadcastsAndRecordsArrive", 4, LongBroadcastsAndRecordsArrive},
    {"EveryAllReduceSumsFor2", 2, EveryAllReduceSums},
    {"EveryAllReduceSumsFor4", 4, EveryAllReduceSums},
    {"EveryAllReduceSumsFor5", 5, EveryAllReduceSums},
};

}  // namespace

std::span<const ConformanceCase> GroupCases() { return kGroupCases; }

}  // namespace trireme
