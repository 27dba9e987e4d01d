// What becomes of pushes, true and false ones, in any order, under every rule: without a wire the
// test knows of each what has to happen.
#include "strategy/server/push_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "strategy/check/counted_once.h"
#include "strategy/server/protocol.h"

namespace trireme {
namespace {

using When = PushGate::When;
using Stale = PushGate::Stale;

constexpr int kClients = 3;
constexpr size_t kFloats = 3;  // client, version that it was made from, first position
constexpr int64_t kBound = 2;
constexpr Plan kPlan{.samples = 50, .batch = 10, .shards = 2, .steps = 200};

// Calls `see` with what reaches the centre.
using See = std::function<void(std::span<const ServerRule::Part>, int64_t step, float share)>;
class SeeingRule : public ServerRule {
 public:
  explicit SeeingRule(See see) : see_(std::move(see)) {}
  void Apply(Queue&, std::span<const Part> parts, int64_t step, float share, Slice) override {
    see_(parts, step, share);
  }

 private:
  const See see_;
};

// A centre behind a gate, and clients that hold leases.
struct Scene {
  Scene(When when, Stale stale, See see)
      : centre([&](Device&) { return std::make_unique<SeeingRule>(std::move(see)); },
               {{.samples = kPlan.samples,
                 .total = PositionsOf(kPlan),
                 .size = kPlan.batch / kPlan.shards},
                1},
               std::vector<float>(kFloats), nullptr),
        gate({kPlan, when, kBound, stale}, centre,
             [this](int client) { answered.push_back(client); }) {
    for (int c = 0; c < kClients; ++c) centre.AddClient("client " + std::to_string(c));
  }
  Message PushOf(int client, int64_t version, std::vector<Lease> leases) const {
    Message push{.kind = kPush, .ints = {version, BitsOf(1.0), BitsOf(1.0), BitsOf(0.5), 0}};
    for (const Lease& lease : leases) push.ints.push_back(lease.id);
    const float begin = leases.empty() ? 0.0f : float(leases[0].begin);
    push.body = {float(client), float(version), begin};
    return push;
  }
  void Forget(int client) {
    centre.leases().Drop(client);
    gate.GiveUp(client);
  }

  ServerState centre;
  PushGate gate;
  std::vector<int> answered;
};

// Changes a good push of its client to one that must not count.
void Spoil(Message& push, unsigned how, int64_t now, int64_t not_own) {
  constexpr double kNever[] = {-1.0, NAN, INFINITY, 1e300};
  switch (how % 10) {
    case 8:
      push.ints[3] = BitsOf(kNever[how / 10 % 4]);  // has waited
      break;
    case 9:
      push.ints[2] = BitsOf(kNever[how / 10 % 4]);  // correct
      break;
    case 0:
      push.ints.resize(PushHead::kInts);
      break;
    case 1:
      push.ints[0] = how % 20 < 10 ? now + 1 : -1;
      break;
    case 2:
      push.body.resize(how % 20 < 10 ? kFloats - 1 : kFloats + 1);
      break;
    case 3:
      push.ints.push_back(push.ints.back());
      break;
    case 4:
      push.ints.back() = not_own;
      break;
    case 5:
      push.ints[1] = BitsOf(how % 20 < 10 ? NAN : -1e300);  // loss
      break;
    case 6:
      push.body[how / 10 % kFloats] = NAN;
      break;
    case 7:
      push.body[how / 10 % kFloats] = -INFINITY;
      break;
  }
}

struct Rule {
  const char* name;
  When when;
  Stale stale;
};
void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.name; }

class PushGateTest : public testing::TestWithParam<Rule> {};

TEST_P(PushGateTest, WhatIsFalseChangesNothingAndWhatIsTrueCountsOnceInItsTime) {
  const auto [name, when, stale] = GetParam();
  const bool alone = when == When::kArrival;
  const ServerState* centre = nullptr;
  int64_t most_behind = 0, most_parts = 0;
  Scene scene(when, stale, [&](std::span<const ServerRule::Part> parts, int64_t step, float share) {
    int64_t samples = 0;
    most_parts = std::max(most_parts, int64_t(parts.size()));
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::span<const float> body = parts[i].body.host();
      for (const float value : body) ASSERT_TRUE(std::isfinite(value));
      samples += parts[i].samples;
      const size_t order = when == When::kClock ? 2 : 0;
      if (i > 0) {
        ASSERT_GE(body[order], parts[i - 1].body.host()[order]);
      }
    }
    const int64_t behind = centre->version() - int64_t(parts[0].body.host()[1]);
    most_behind = std::max(most_behind, behind);
    if (alone) {
      ASSERT_EQ(parts.size(), 1u);
    }
    if (stale == Stale::kWait || stale == Stale::kDrop) {
      ASSERT_LE(behind, kBound);
    }
    const bool scaled = stale == Stale::kScale && behind > kBound;
    ASSERT_EQ(share, scaled ? float(kBound + 1) / float(behind + 1) : 1.0f);
    if (when != When::kClock) return;
    ASSERT_EQ(step, centre->version());
    ASSERT_EQ(samples, StepSamples(kPlan, step));
  });
  centre = &scene.centre;
  LeaseTable& leases = scene.centre.leases();
  CountedOnce counter(kPlan);
  scene.centre.OnClose([&](const Lease& lease) { counter.Close(lease); });

  std::mt19937 random(3);
  std::vector<Lease> held[kClients];
  int64_t from[kClients] = {-1, -1, -1};
  int64_t refused = 0, dropped = 0;
  const auto forget = [&](int client) {
    scene.Forget(client);
    held[client].clear();
    from[client] = -1;
  };
  for (int i = 0; !leases.finished() && !HasFatalFailure(); ++i) {
    ASSERT_LT(i, 200'000) << leases.closed_positions();
    const int c = int(random() % kClients);
    const int64_t now = scene.centre.version(), closed = leases.closed_positions();
    switch (random() % 8) {
      case 0:
        scene.gate.ApplyInTime();
        scene.gate.ApplyRound();
        if (leases.epoch_over() && !leases.finished()) scene.centre.NextEpoch();
        break;
      case 1:
        if (random() % 8 == 0) forget(c);
        break;
      case 2:
      case 3:
      case 4:  // works
        if (stale == Stale::kWait && from[c] < 0) {
          if (!scene.gate.MayBegin()) break;
          scene.gate.Begin(c);
          from[c] = now;
        }
        if (when == When::kClock && !held[c].empty()) break;
        if (const auto lease = leases.Take(c)) held[c].push_back(*lease);
        break;
      default:
        if (held[c].empty()) break;
        const int64_t version =
            stale == Stale::kWait ? from[c] : std::max<int64_t>(0, now - int64_t(random() % 6));
        Message push = scene.PushOf(c, version, held[c]);
        if (random() % 4 == 0) {
          const auto& others = held[(c + 1) % kClients];
          Spoil(push, random(), now, others.empty() ? 0 : others[0].id);
          const int64_t open = leases.open();
          ASSERT_NE(scene.gate.Take(c, push).fault, nullptr);
          ASSERT_EQ(scene.centre.version(), now);
          ASSERT_EQ(leases.closed_positions(), closed);
          ASSERT_EQ(leases.open(), open);
          ++refused;
          forget(c);
          break;
        }
        Message again = push;
        const bool drops = stale == Stale::kDrop && now - version > kBound;
        ASSERT_EQ(scene.gate.Take(c, push).fault != nullptr, drops);
        dropped += drops;
        if (!drops) {
          ASSERT_NE(scene.gate.Take(c, again).fault, nullptr) << "taken twice";
        }
        forget(c);  // what was taken is no longer the client's to lose
    }
  }
  counter.ExpectOnce(PositionsOf(kPlan));
  EXPECT_EQ(leases.open(), 0);
  EXPECT_GT(refused, 10);
  EXPECT_EQ(dropped > 0, stale == Stale::kDrop);
  EXPECT_EQ(int64_t(scene.answered.size()), alone ? scene.centre.version() : 0);
  if (alone) {
    EXPECT_EQ(most_behind > kBound, stale == Stale::kTake || stale == Stale::kScale);
  }
  EXPECT_EQ(most_parts > 1, !alone);
}

INSTANTIATE_TEST_SUITE_P(Rules, PushGateTest,
                         testing::Values(Rule{"take", When::kArrival, Stale::kTake},
                                         Rule{"scale", When::kArrival, Stale::kScale},
                                         Rule{"drop", When::kArrival, Stale::kDrop},
                                         Rule{"wait", When::kArrival, Stale::kWait},
                                         Rule{"clock", When::kClock, Stale::kTake},
                                         Rule{"round", When::kRound, Stale::kTake}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(PushGateHeadTest, OverflowsAreCountedAndNeverFewerThanNone) {
  Scene scene(When::kArrival, Stale::kTake, [](auto...) {});
  for (const int64_t overflows : {int64_t(-1), INT64_MAX, int64_t(3)}) {
    const Lease lease = *scene.centre.leases().Take(0);
    Message message = scene.PushOf(0, scene.centre.version(), {lease});
    message.ints[4] = overflows;
    EXPECT_EQ(scene.gate.Take(0, message).fault == nullptr, overflows == 3);
    scene.Forget(0);
  }
  EXPECT_EQ(scene.centre.clients()[0].overflows, 3);
}

// Only a client's own finite push ends its row; one that is false in another way is none of it.
TEST(PushGateRowTest, AClientHasDivergedAfterSoManyPushesInARow) {
  Scene scene(When::kArrival, Stale::kTake, [](auto...) {});
  const auto push = [&](int client, float value) {
    if (scene.centre.leases().epoch_over()) scene.centre.NextEpoch();
    const Lease lease = *scene.centre.leases().Take(client);
    Message message = scene.PushOf(client, scene.centre.version(), {lease});
    message.body[0] = value;
    const PushGate::Verdict verdict = scene.gate.Take(client, message);
    EXPECT_EQ(verdict.fault == nullptr, std::isfinite(value));
    scene.Forget(client);
    return verdict.diverged;
  };
  for (int i = 1; i < PushGate::kDiverged; ++i) EXPECT_FALSE(push(0, NAN));
  EXPECT_FALSE(push(0, 1));
  for (int i = 1; i < PushGate::kDiverged; ++i) {
    EXPECT_FALSE(push(0, NAN));
    EXPECT_FALSE(push(1, 1));
  }
  Message none = scene.PushOf(0, 0, {});
  const PushGate::Verdict verdict = scene.gate.Take(0, none);
  EXPECT_NE(verdict.fault, nullptr);
  EXPECT_FALSE(verdict.diverged);
  EXPECT_TRUE(push(0, NAN));
  EXPECT_FALSE(push(1, NAN));
}

}  // namespace
}  // namespace trireme
