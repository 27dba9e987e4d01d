#include "strategy/server/lease_table.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/random.h"

namespace trireme {
namespace {

// The same duties by a list of every position of the run: who has it, and how often it counted.
class Model {
 public:
  Model(int64_t samples, int64_t total) : samples_(samples), counted_(total), holder_(total, 0) {}

  void Take(const Lease& lease) {
    EXPECT_TRUE(ids_.insert(lease.id).second) << "id " << lease.id << " was given before";
    EXPECT_LT(lease.begin, lease.end);
    for (int64_t p = At(lease, lease.begin); p < At(lease, lease.end); ++p) {
      EXPECT_EQ(holder_[p], 0) << "position " << p << " is on lease";
      EXPECT_EQ(counted_[p], 0) << "position " << p << " counts already";
      holder_[p] = lease.id;
    }
  }
  void Close(const Lease& lease) {
    for (int64_t p = At(lease, lease.begin); p < At(lease, lease.end); ++p) {
      EXPECT_EQ(holder_[p], lease.id);
      holder_[p] = 0;
      ++counted_[p];
    }
  }
  void Drop(int64_t id) { std::replace(holder_.begin(), holder_.end(), id, int64_t(0)); }
  void DropAll() { std::fill(holder_.begin(), holder_.end(), 0); }
  bool EpochOver(int64_t epoch, EpochBorder border) const {
    const int64_t end = (epoch + 1) * samples_;
    if (border == EpochBorder::kOpen) return counted() >= end;
    return std::all_of(counted_.begin(),
                       counted_.begin() + std::min<int64_t>(int64_t(counted_.size()), end),
                       [](int c) { return c == 1; });
  }
  int64_t Untaken(int64_t epoch, EpochBorder border) const {
    int64_t positions = 0, end = int64_t(counted_.size());
    if (border == EpochBorder::kBarrier) end = std::min(end, (epoch + 1) * samples_);
    for (int64_t p = 0; p < end; ++p) positions += !counted_[p] && !holder_[p];
    return positions;
  }
  int64_t counted() const { return std::count(counted_.begin(), counted_.end(), 1); }
  std::vector<int> image() const { return counted_; }
  void Restore(std::vector<int> image) {
    counted_ = std::move(image);
    DropAll();
  }

 private:
  int64_t At(const Lease& lease, int64_t p) const { return lease.epoch * samples_ + p; }
  int64_t samples_;
  std::vector<int> counted_;
  std::vector<int64_t> holder_;  // id, 0 for none
  std::set<int64_t> ids_;
};

// Clients take, push, die; the server saves itself and dies, in a random order. How many epochs
// were worked on at a time.
int64_t Play(uint64_t seed, EpochBorder border) {
  const Random random(seed);
  uint64_t draw = 0;
  const auto below = [&](uint64_t n) { return int64_t(random.Bits(draw++) % n); };
  const int64_t samples = 1 + below(60), total = 1 + below(4 * samples), size = 1 + below(9);
  const int clients = 1 + int(below(4));
  const LeaseTable::Run run{.samples = samples, .total = total, .size = size, .border = border};
  LeaseTable table(run, 1);
  int64_t most_epochs = 0;
  Model model(samples, total);
  std::map<int64_t, Lease> open;
  auto saved = table.Save();
  auto image = model.image();
  int64_t newest = 0;

  for (int turn = 0; !table.finished(); ++turn) {
    if (turn > 100'000) {
      ADD_FAILURE() << "no end";
      break;
    }
    const int client = int(below(clients));
    switch (turn < 3000 ? below(12) : below(8)) {  // calm seas at last
      default:
        if (const auto lease = table.Take(client)) {
          EXPECT_EQ(lease->client, client);
          if (border == EpochBorder::kBarrier) {
            EXPECT_EQ(lease->epoch, table.epoch());
          }
          most_epochs = std::max(most_epochs, lease->epoch - table.epoch() + 1);
          EXPECT_LE(lease->end, samples);
          EXPECT_LE(lease->end - lease->begin, size);
          model.Take(*lease);
          open[lease->id] = *lease;
          newest = std::max(newest, lease->id);
        }
        break;
      case 4:
      case 5:
      case 6:
      case 7:
        if (!open.empty()) {
          auto it = open.begin();
          std::advance(it, below(open.size()));
          const Lease lease = it->second;
          EXPECT_TRUE(table.Owns(lease.id, lease.client));
          EXPECT_FALSE(table.Owns(lease.id, lease.client + 1));
          EXPECT_EQ(table.Close(lease.id), lease);
          EXPECT_FALSE(table.Owns(lease.id, lease.client));
          model.Close(lease);
          open.erase(it);
        }
        break;
      case 8: {
        int dropped = 0;
        std::erase_if(open, [&](const auto& item) {
          if (item.second.client != client) return false;
          model.Drop(item.first);
          return ++dropped > 0;
        });
        EXPECT_EQ(table.Drop(client), dropped);
        break;
      }
      case 9:
        saved = table.Save();
        image = model.image();
        break;
      case 10:
        if (below(8) != 0) break;
        table = LeaseTable(run, 1);
        table.Load(saved, newest + 1);
        model.Restore(image);
        open.clear();
        break;
    }
    EXPECT_EQ(table.open(), int64_t(open.size()));
    EXPECT_EQ(table.untaken(), model.Untaken(table.epoch(), border));
    EXPECT_EQ(table.closed_positions(), model.counted());
    EXPECT_EQ(table.epoch_over(), model.EpochOver(table.epoch(), border));
    while (table.epoch_over() && !table.last_epoch()) {
      EXPECT_TRUE(table.epoch_complete());
      table.NextEpoch();
    }
  }
  EXPECT_EQ(model.counted(), total);
  EXPECT_EQ(table.epoch_complete(), total % samples == 0);
  return most_epochs;
}

TEST(LeaseTable, EveryPositionCountsOnceWhateverHappens) {
  int64_t most_epochs = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    EXPECT_LE(Play(seed, EpochBorder::kBarrier), 1);
    most_epochs = std::max(most_epochs, Play(seed, EpochBorder::kOpen));
    if (HasFailure()) return;
  }
  EXPECT_GT(most_epochs, 1);
}

TEST(LeaseTable, ARunMayBeLengthened) {
  LeaseTable table({.samples = 10, .total = 15, .size = 5}, 1);
  for (int i = 0; i < 2; ++i) table.Close(table.Take(0)->id);
  table.NextEpoch();
  table.Close(table.Take(0)->id);
  EXPECT_TRUE(table.finished());
  LeaseTable longer({.samples = 10, .total = 30, .size = 5}, 1);
  longer.Load(table.Save(), 100);
  EXPECT_FALSE(longer.epoch_over());
  EXPECT_EQ(longer.Take(0), (Lease{.id = 100, .epoch = 1, .begin = 5, .end = 10, .client = 0}));
}

LeaseTable Small(EpochBorder border) {
  return LeaseTable({.samples = 4, .total = 12, .size = 2, .border = border}, 1);
}

// The next epoch begins while a straggler works on the last one, and its positions count where they
// belong.
TEST(LeaseTable, BehindAnOpenBorderNobodyWaitsForTheLast) {
  LeaseTable table = Small(EpochBorder::kOpen);
  const Lease slow = *table.Take(1);
  table.Close(table.Take(0)->id);
  const Lease next = *table.Take(0);
  EXPECT_EQ(next.epoch, 1);
  EXPECT_EQ(next.begin, 0);
  table.Close(next.id);
  EXPECT_TRUE(table.epoch_over());  // as many count as an epoch has
  table.NextEpoch();
  EXPECT_EQ(table.Drop(1), 1);
  const Lease again = *table.Take(0);
  EXPECT_EQ(again.epoch, slow.epoch);
  EXPECT_EQ(again.begin, slow.begin);
  EXPECT_EQ(again.end, slow.end);
}

// Saved in the middle of both, by a run that then waits at borders, and the other way round.
TEST(LeaseTable, ASavedTableFitsTheOtherBorder) {
  for (const EpochBorder from : {EpochBorder::kOpen, EpochBorder::kBarrier}) {
    LeaseTable table = Small(from);
    table.Take(1);
    for (int i = 0; i < 2; ++i) {
      if (const auto lease = table.Take(0)) table.Close(lease->id);
      if (table.epoch_over()) table.NextEpoch();
    }
    LeaseTable other =
        Small(from == EpochBorder::kOpen ? EpochBorder::kBarrier : EpochBorder::kOpen);
    other.Load(table.Save(), 100);
    EXPECT_EQ(other.closed_positions(), table.closed_positions());
    while (!other.finished()) {
      while (const auto lease = other.Take(0)) other.Close(lease->id);
      while (other.epoch_over() && !other.last_epoch()) other.NextEpoch();
    }
    EXPECT_EQ(other.closed_positions(), 12);
  }
}

TEST(LeaseTable, RefusesNumbersThatAreNoTable) {
  LeaseTable table({.samples = 10, .total = 20, .size = 3}, 1);
  table.Take(0);
  table.Close(table.Take(0)->id);
  const std::vector<int64_t> good = table.Save();
  table.Load(good, 5);
  for (size_t i = 0; i < good.size(); ++i) {
    for (int64_t value : {int64_t(-1), int64_t(11), int64_t(1) << 62, INT64_MIN, INT64_MAX}) {
      std::vector<int64_t> bad = good;
      bad[i] = value;
      EXPECT_THROW(table.Load(bad, 5), Error) << "number " << i << " is " << value;
    }
    const std::vector<int64_t> shorter(good.begin(), good.begin() + i);
    EXPECT_THROW(table.Load(shorter, 5), Error);
  }
  EXPECT_THROW(table.Load(std::vector<int64_t>{0, 6, 1, 2, 0, 3, 2, 5}, 5), Error);  // overlap
}

}  // namespace
}  // namespace trireme
