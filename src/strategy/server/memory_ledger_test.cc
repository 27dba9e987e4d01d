#include "strategy/server/memory_ledger.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "transport/memory/box.h"

namespace trireme {
namespace {

constexpr size_t kFloats = 300;
constexpr double kPatience_s = 60;

// A server's state with two clients, and one client's way to the same box.
class Ledger : public testing::Test {
 protected:
  Ledger() : state_(NewState()), ledger_(*server_, *state_, {.timeout_s = kPatience_s}) {
    ledger_.Begin();
    centre_ = client_->Open(kCentreRegion, After(kPatience_s));
    fences_ = client_->Open(kFenceRegion, After(kPatience_s));
  }
  static std::unique_ptr<ServerState> NewState() {
    const std::vector<float> values(kFloats, 1);
    auto state = std::make_unique<ServerState>(
        [](Device&) { return MakeAddRule(); },
        LeaseTable({.samples = 100, .total = 200, .size = 10}, 1000), values, nullptr);
    state->AddClient("client 1");
    state->AddClient("client 2");
    return state;
  }
  void Add(const CentreNote& note, int64_t fence, float value = 1) {
    const MemoryGuard guard{fences_, uint64_t(note.client), fence};
    const std::vector<float> values(kFloats, value);
    client_->Accumulate(centre_, 0, values, PackNote(note), nullptr, &guard).Wait();
  }
  int64_t Take(int client) { return state_->leases().Take(client)->id; }

  MemoryBox box_{MemoryBoxSetup{}};
  const std::unique_ptr<Memory> server_ = box_.Connect(), client_ = box_.Connect();
  std::unique_ptr<ServerState> state_;
  MemoryLedger ledger_;
  Region centre_, fences_;
};

TEST_F(Ledger, ClosesWhatTheNotesOfAddsName) {
  const std::vector<int64_t> leases{Take(0), Take(0), Take(0)};
  const int64_t others = Take(1);
  const auto version = int64_t(client_->Wait(centre_, 1, After(kPatience_s)));
  Add({0, {.version = version, .loss_sum = 12.5, .correct = 20, .waited_s = 0.25}, leases},
      ledger_.fence(0));
  Add({1, {.version = version}, {others}}, ledger_.fence(1));
  EXPECT_EQ(state_->leases().closed_positions(), 0);
  EXPECT_TRUE(ledger_.Read());
  EXPECT_FALSE(ledger_.Read());
  EXPECT_EQ(state_->leases().closed_positions(), 40);
  EXPECT_EQ(state_->leases().open(), 0);
  EXPECT_EQ(state_->version(), 2);
  EXPECT_EQ(state_->progress().loss_sum, 12.5);
  EXPECT_EQ(state_->progress().correct, 20);
  EXPECT_EQ(state_->client(0).samples, 30);
  EXPECT_EQ(state_->client(0).waited_s, 0.25);
  EXPECT_EQ(state_->client(0).staleness.most(), 0);
  EXPECT_EQ(state_->client(1).staleness.most(), 1);  // the other's add came between
}

TEST_F(Ledger, GathersTheCentreAndTheLeasesOfOneMoment) {
  Add({0, {}, {Take(0)}}, ledger_.fence(0));
  ledger_.Gather();
  EXPECT_EQ(state_->leases().closed_positions(), 10);
  EXPECT_EQ(state_->partition()[0], 2);
  Add({0, {}, {Take(0)}}, ledger_.fence(0));
  EXPECT_EQ(state_->partition()[0], 2);  // of the last moment
  ledger_.Gather();
  EXPECT_EQ(state_->partition()[kFloats - 1], 3);
  EXPECT_EQ(state_->leases().closed_positions(), 20);
}

TEST_F(Ledger, NothingIsAddedForLeasesThatWereTakenBack) {
  const int64_t early = Take(0), late = Take(0), fence = ledger_.fence(0);
  Add({0, {}, {early}}, fence);
  ledger_.Fence(0);
  EXPECT_FALSE(state_->leases().Open(early));  // it was in before
  EXPECT_EQ(state_->leases().Drop(0), 1);
  EXPECT_THROW(Add({0, {}, {late}}, fence), GuardChanged);
  Add({1, {}, {Take(1)}}, ledger_.fence(1));  // the same positions, by another client
  Add({0, {}, {Take(0)}}, ledger_.fence(0));
  ledger_.Gather();
  EXPECT_EQ(state_->leases().closed_positions(), 30);
  EXPECT_EQ(state_->partition()[0], 4);
}

TEST_F(Ledger, ANoteThatCannotBeClosesNothing) {
  const int64_t own = Take(0);
  Add({0, {}, {own, own}}, ledger_.fence(0));
  Add({1, {}, {own}}, ledger_.fence(1));
  Add({0, {}, {own + 77}}, ledger_.fence(0));
  Add({7, {}, {own}}, ledger_.fence(7));
  client_->Accumulate(centre_, 0, std::vector<float>(kFloats)).Wait();
  client_->Accumulate(centre_, 0, std::vector<float>(kFloats), std::vector<std::byte>(56)).Wait();
  EXPECT_TRUE(ledger_.Read());
  EXPECT_EQ(state_->leases().closed_positions(), 0);
  EXPECT_EQ(state_->version(), 0);
  EXPECT_EQ(state_->client(0).refused, 2);
  EXPECT_EQ(state_->client(1).refused, 1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Add({0, {.version = 1 << 20, .loss_sum = nan, .correct = -3, .waited_s = nan}, {own}},
      ledger_.fence(0));
  EXPECT_TRUE(ledger_.Read());
  EXPECT_EQ(state_->leases().closed_positions(), 10);
  EXPECT_EQ(state_->progress().loss_sum, 0);
  EXPECT_EQ(state_->progress().correct, 0);
  EXPECT_EQ(state_->client(0).waited_s, 0);
}

TEST_F(Ledger, AnotherLifeBeginsWithItsOwnValues) {
  const int64_t fence = ledger_.fence(0), lease = Take(0);
  Add({0, {}, {lease}}, fence);
  const auto next = box_.Connect();
  const auto state = NewState();
  {
    MemoryLedger other(*next, *state, {.timeout_s = 0});
    EXPECT_THROW(other.Begin(), Error);  // while the first lives
  }
  server_->Unlock(centre_);  // as the end of its session would
  MemoryLedger other(*next, *state, {.timeout_s = kPatience_s});
  other.Begin();
  EXPECT_THROW(Add({0, {}, {lease}}, fence), GuardChanged);
  other.Gather();
  EXPECT_EQ(state->partition()[0], 1);
  EXPECT_EQ(state->leases().closed_positions(), 0);
  EXPECT_FALSE(other.Read());
}

TEST(CentreNotes, ComeBackAsTheyWere) {
  CentreNote note{.client = 3, .head = {.version = 9, .loss_sum = 1.5, .correct = 2}};
  for (int64_t id : {70, 71, 72, 9, 10, 4}) note.leases.push_back((int64_t(5) << 32) + id);
  const auto back = UnpackNote(PackNote(note));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->client, 3);
  EXPECT_EQ(back->head.ints(), note.head.ints());
  EXPECT_EQ(back->leases, note.leases);
}

TEST(CentreNotes, HaveRoomForManyRunsAndAnyLength) {
  std::vector<int64_t> leases(100'000);
  std::iota(leases.begin(), leases.end(), 17);
  EXPECT_TRUE(HasRoomInNote(leases));
  leases.clear();
  while (HasRoomInNote(leases)) leases.push_back(int64_t(leases.size()) * 2);
  EXPECT_EQ(leases.size(), 13u);
  const std::vector<std::byte> packed = PackNote({.leases = leases});
  EXPECT_LE(packed.size(), kMostNote);
  EXPECT_EQ(UnpackNote(packed)->leases, leases);
  for (size_t bytes = 0; bytes < packed.size(); ++bytes) {
    const auto cut = UnpackNote(std::span(packed).first(bytes));
    EXPECT_LT(cut ? cut->leases.size() : 0, leases.size());
  }
}

}  // namespace
}  // namespace trireme
