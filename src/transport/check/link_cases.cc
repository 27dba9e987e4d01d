#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/error.h"
#include "transport/check/conformance.h"
#include "transport/collective/broadcast.h"

namespace trireme {
namespace {

constexpr double kSoon = 60;  // a busy machine must not make a test fail

Message Expect(Link& link) {
  Message message;
  EXPECT_EQ(link.Receive(message, After(kSoon)), Arrival::kMessage);
  return message;
}

void MessagesArriveOnceAndInOrder(World& world) {
  constexpr int kMessages = 300;
  if (world.rank() == 0) {
    for (int r = 1; r < world.size(); ++r) {
      for (int i = 0; i < kMessages; ++i) {
        const Message message = Expect(world.LinkTo(r));
        ASSERT_EQ(message.kind, i);
        EXPECT_EQ(message.ints, std::vector<int64_t>(i % 5, r));
        EXPECT_EQ(message.body, std::vector<float>(i % 7 * 1000, float(i)));
      }
      world.LinkTo(r).Send({.kind = 1000 + r});
    }
    return;
  }
  for (int i = 0; i < kMessages; ++i) {
    world.LinkTo(0).Send({.kind = i,
                          .ints = std::vector<int64_t>(i % 5, world.rank()),
                          .body = std::vector<float>(i % 7 * 1000, float(i))});
  }
  EXPECT_EQ(Expect(world.LinkTo(0)).kind, 1000 + world.rank());
}

void LargeMessagesGoBothWays(World& world) {
  Link& link = world.LinkTo(1 - world.rank());
  const size_t n = 7'000'003;
  for (int i = 0; i < 2; ++i) {
    link.Send({.kind = i, .body = std::vector<float>(n, float(world.rank() + 10 * i))});
    EXPECT_TRUE(Expect(link).body == std::vector<float>(n, float(1 - world.rank() + 10 * i)));
  }
}

// An offer that is still waiting is replaced, and comes after the messages: whoever is slow sees
// few offers, the newest one for certain.
void OffersNeverBuildAQueue(World& world) {
  Link& link = world.LinkTo(1 - world.rank());
  constexpr int kOffers = 50;
  if (world.rank() == 0) {
    for (int i = 1; i <= kOffers; ++i) {
      link.Offer({.kind = i, .body = std::vector<float>(1'000'000, float(i))});
    }
    link.Send({.kind = 0});
    Barrier(world.group(), 0);
    Expect(link);  // the other has seen all it wants
    return;
  }
  Barrier(world.group(), 0);  // it is slow: all offers are made before it looks
  int last = 0, seen = 0;
  bool message = false;
  while (last < kOffers || !message) {
    const Message got = Expect(link);
    if (testing::Test::HasFailure()) return;
    if (got.kind == 0) {
      message = true;
      continue;
    }
    EXPECT_GT(got.kind, last);
    EXPECT_EQ(got.body.back(), float(got.kind));
    last = got.kind;
    ++seen;
  }
  EXPECT_LT(seen, kOffers);
  link.Send({});
}

void ADeadlinePasses(World& world) {
  Message message;
  const Deadline start = After(0);
  EXPECT_EQ(world.LinkTo(1 - world.rank()).Receive(message, After(0.05)), Arrival::kNothing);
  EXPECT_GE(After(0) - start, std::chrono::milliseconds(50));
  Barrier(world.group(), 0);
}

void AClosedEndIsGoneAfterItsLastMessage(World& world) {
  Link& link = world.LinkTo(1 - world.rank());
  if (world.rank() == 1) {
    link.Send({.kind = 5});
    link.Close();
    Barrier(world.group(), 0);
    return;
  }
  EXPECT_EQ(Expect(link).kind, 5);
  Message message;
  EXPECT_EQ(link.Receive(message, After(kSoon)), Arrival::kGone);
  EXPECT_EQ(link.Receive(message, After(0.02)), Arrival::kNothing);
  Barrier(world.group(), 0);
}

void ABellRingsForEachLink(World& world) {
  if (world.rank() > 0) {
    for (int i = 0; i < 20; ++i) world.LinkTo(0).Send({.kind = i});
    Expect(world.LinkTo(0));
    return;
  }
  WakeEvent wake;
  std::vector<int> got(world.size());
  for (int r = 1; r < world.size(); ++r) world.LinkTo(r).SetWakeEvent(&wake);
  for (int total = 0; total < 20 * (world.size() - 1);) {
    const Deadline patience = After(kSoon);  // the first may be that of SetWakeEvent
    wake.Wait(patience);
    const int before = total;
    for (int r = 1; r < world.size(); ++r) {
      for (Message m; world.LinkTo(r).Receive(m, After(0)) == Arrival::kMessage; ++total) {
        EXPECT_EQ(m.kind, got[r]++);
      }
    }
    if (total == before && After(0) >= patience) FAIL() << "nobody is woken";
  }
  for (int r = 1; r < world.size(); ++r) {
    world.LinkTo(r).SetWakeEvent(nullptr);
    world.LinkTo(r).Send({});
  }
}

void LinksEndWithTheJob(World& world) {
  Message message;
  if (world.rank() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    throw Error("disk full");
  }
  world.LinkTo(0).Receive(message, After(kSoon));
}

constexpr ConformanceCase kLinkCases[] = {
    {"MessagesArriveOnceAndInOrder", 3, MessagesArriveOnceAndInOrder},
    {"LargeMessagesGoBothWays", 2, LargeMessagesGoBothWays},
    {"OffersNeverBuildAQueue", 2, OffersNeverBuildAQueue},
    {"ADeadlinePasses", 2, ADeadlinePasses},
    {"AClosedEndIsGoneAfterItsLastMessage", 2, AClosedEndIsGoneAfterItsLastMessage},
    {"ABellRingsForEachLink", 4, ABellRingsForEachLink},
    {.name = "LinksEndWithTheJob",
     .ranks = 2,
     .run = LinksEndWithTheJob,
     .error = "disk full (rank 0 of 2)"},
};

}  // namespace

std::span<const ConformanceCase> LinkCases() { return kLinkCases; }

}  // namespace trireme
