#include "strategy/server/lease_table.h"

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"

namespace trireme {

LeaseTable::LeaseTable(int64_t samples, int64_t total, int64_t size, int64_t first_id, Cut cut)
    : samples_(samples), total_(total), size_(size), cut_(std::move(cut)), next_id_(first_id) {
  TRIREME_ASSERT(samples > 0 && total >= 0 && size > 0);
}

int64_t LeaseTable::EpochEnd() const {
  return std::clamp<int64_t>(total_ - epoch_ * samples_, 0, samples_);
}

std::optional<Lease> LeaseTable::Take(int client) {
  Lease lease{.id = next_id_, .epoch = epoch_, .client = client};
  if (!free_.empty()) {
    Stretch& first = free_.front();
    lease.begin = first.begin;
    lease.end = first.begin = std::min(first.end, EndOf(first.begin));
    if (first.begin == first.end) free_.pop_front();
  } else if (next_ < EpochEnd()) {
    lease.begin = next_;
    lease.end = next_ = std::min(EpochEnd(), EndOf(next_));
  } else {
    return {};
  }
  ++next_id_;
  open_.emplace(lease.id, lease);
  return lease;
}

std::optional<int64_t> LeaseTable::next() const {
  if (!free_.empty()) return free_.front().begin;
  if (next_ < EpochEnd()) return next_;
  return {};
}

void LeaseTable::Hold(int64_t id) {
  const auto found = open_.find(id);
  TRIREME_ASSERT(found != open_.end());
  found->second.client = kNobody;
}

bool LeaseTable::Owns(int64_t id, int client) const {
  const auto found = open_.find(id);
  return found != open_.end() && found->second.client == client;
}

const Lease& LeaseTable::Get(int64_t id) const {
  const auto found = open_.find(id);
  TRIREME_ASSERT(found != open_.end());
  return found->second;
}

const Lease& LeaseTable::Close(int64_t id) {
  const auto found = open_.find(id);
  TRIREME_ASSERT(found != open_.end());
  closed_ = found->second;
  closed_positions_ += closed_.end - closed_.begin;
  open_.erase(found);
  return closed_;
}

int LeaseTable::Drop(int client) {
  int dropped = 0;
  for (auto it = open_.begin(); it != open_.end();) {
    if (it->second.client != client) {
      ++it;
      continue;
    }
    const Stretch stretch{it->second.begin, it->second.end};
    const auto place =
        std::lower_bound(free_.begin(), free_.end(), stretch,
                         [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
    free_.insert(place, stretch);
    it = open_.erase(it);
    ++dropped;
  }
  return dropped;
}

int64_t LeaseTable::untaken() const {
  int64_t positions = EpochEnd() - next_;
  for (const Stretch& s : free_) positions += s.end - s.begin;
  return positions;
}

bool LeaseTable::drained() const { return next_ >= EpochEnd() && open_.empty() && free_.empty(); }

bool LeaseTable::finished() const { return drained() && (epoch_ + 1) * samples_ >= total_; }

void LeaseTable::NextEpoch() {
  TRIREME_ASSERT(drained());
  ++epoch_;
  next_ = 0;
}

// epoch, next, closed positions, number of free stretches, then begin and end of each.
std::vector<int64_t> LeaseTable::Save() const {
  std::vector<int64_t> out{epoch_, next_, closed_positions_, int64_t(free_.size() + open_.size())};
  for (const Stretch& s : free_) out.insert(out.end(), {s.begin, s.end});
  for (const auto& [id, lease] : open_) out.insert(out.end(), {lease.begin, lease.end});
  return out;
}

void LeaseTable::Load(std::span<const int64_t> saved, int64_t next_id) {
  const auto require = [&](bool ok) {
    if (!ok) throw Error("the saved leases do not fit a run of {} samples per epoch", samples_);
  };
  require(saved.size() >= 4);
  const int64_t epoch = saved[0], next = saved[1], closed = saved[2], count = saved[3];
  require(epoch >= 0 && epoch <= (int64_t(1) << 40) && next >= 0 && next <= samples_);
  require(count >= 0 && uint64_t(count) == (saved.size() - 4) / 2 && saved.size() % 2 == 0);
  std::deque<Stretch> stretches;
  int64_t missing = 0;
  for (size_t i = 4; i < saved.size(); i += 2) {
    require(saved[i] >= 0 && saved[i] < saved[i + 1] && saved[i + 1] <= next);
    stretches.push_back({saved[i], saved[i + 1]});
    missing += saved[i + 1] - saved[i];
  }
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < stretches.size(); ++i) {
    require(stretches[i - 1].end <= stretches[i].begin);
  }
  require(closed == epoch * samples_ + next - missing);

  epoch_ = epoch;
  next_ = next;
  closed_positions_ = closed;
  next_id_ = next_id;
  open_.clear();
  free_ = std::move(stretches);
}

}  // namespace trireme
