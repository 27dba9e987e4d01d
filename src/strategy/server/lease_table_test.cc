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
  bool Drained(int64_t epoch) const {
    const int64_t end = std::min<int64_t>(counted_.size(), (epoch + 1) * samples_);
    return std::all_of(counted_.begin(), counted_.begin() + end, [](int c) { return c == 1; });
  }
  int64_t Untaken(int64_t epoch) const {
    int64_t positions = 0;
    const int64_t end = std::min<int64_t>(counted_.size(), (epoch + 1) * samples_);
    for (int64_t p = epoch * samples_; p < end; ++p) positions += !counted_[p] && !holder_[p];
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

// Clients take, push, die; the server saves itself and dies, in a random order.
void Play(uint64_t seed) {
  const Random random(seed);
  uint64_t draw = 0;
  const auto below = [&](uint64_t n) { return int64_t(random.Bits(draw++) % n); };
  const int64_t samples = 1 + below(60), total = 1 + below(4 * samples), size = 1 + below(9);
  const int clients = 1 + int(below(4));
  LeaseTable table(samples, total, size, 1);
  Model model(samples, total);
  std::map<int64_t, Lease> open;
  auto saved = table.Save();
  auto image = model.image();
  int64_t newest = 0;

  for (int turn = 0; !table.finished(); ++turn) {
    ASSERT_LT(turn, 100'000);
    const int client = int(below(clients));
    switch (turn < 3000 ? below(12) : below(8)) {  // calm seas at last
      default:
        if (const auto lease = table.Take(client)) {
          EXPECT_EQ(lease->client, client);
          EXPECT_EQ(lease->epoch, table.epoch());
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
        table = LeaseTable(samples, total, size, 1);
        table.Load(saved, newest + 1);
        model.Restore(image);
        open.clear();
        break;
    }
    EXPECT_EQ(table.open(), int64_t(open.size()));
    EXPECT_EQ(table.untaken(), model.Untaken(table.epoch()));
    EXPECT_EQ(table.closed_positions(), model.counted());
    EXPECT_EQ(table.drained(), model.Drained(table.epoch()));
    if (table.drained() && !table.finished()) {
      EXPECT_TRUE(table.epoch_complete());
      table.NextEpoch();
    }
  }
  EXPECT_EQ(model.counted(), total);
  EXPECT_EQ(table.epoch_complete(), total % samples == 0);
}

TEST(LeaseTable, EveryPositionCountsOnceWhateverHappens) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Play(seed);
    if (HasFailure()) return;
  }
}

TEST(LeaseTable, ARunMayBeLengthened) {
  LeaseTable table(10, 15, 5, 1);
  for (int i = 0; i < 2; ++i) table.Close(table.Take(0)->id);
  table.NextEpoch();
  table.Close(table.Take(0)->id);
  EXPECT_TRUE(table.finished());
  LeaseTable longer(10, 30, 5, 1);
  longer.Load(table.Save(), 100);
  EXPECT_FALSE(longer.drained());
  EXPECT_EQ(longer.Take(0), (Lease{.id = 100, .epoch = 1, .begin = 5, .end = 10, .client = 0}));
}

TEST(LeaseTable, RefusesNumbersThatAreNoTable) {
  LeaseTable table(10, 20, 3, 1);
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
