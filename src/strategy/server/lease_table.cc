#include "strategy/server/lease_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/error.h"

namespace trireme {

LeaseTable::LeaseTable(Run run, int64_t first_id) : run_(std::move(run)), next_id_(first_id) {
  TRIREME_ASSERT(run_.samples > 0 && run_.total >= 0 && run_.size > 0);
}

int64_t LeaseTable::Limit() const {
  if (run_.border == EpochBorder::kOpen) return run_.total;
  return std::min(run_.total, (epoch_ + 1) * run_.samples);
}

int64_t LeaseTable::EndOf(int64_t begin) const {
  const int64_t first = begin - begin % run_.samples;  // of its epoch
  const int64_t end = run_.cut ? first + run_.cut(begin - first) : begin + run_.size;
  return std::min({end, first + run_.samples, run_.total});
}

std::optional<Lease> LeaseTable::Take(int client) {
  const auto place = next();
  if (!place) return {};
  const int64_t first = place->epoch * run_.samples, begin = first + place->position;
  int64_t end = EndOf(begin);
  if (begin == next_) {
    next_ = end;
  } else {
    Stretch& given_back = free_.front();
    end = given_back.begin = std::min(given_back.end, end);
    if (given_back.begin == given_back.end) free_.pop_front();
  }
  const Lease lease{.id = next_id_++,
                    .epoch = place->epoch,
                    .begin = place->position,
                    .end = end - first,
                    .client = client};
  open_.emplace(lease.id, lease);
  return lease;
}

std::optional<LeaseTable::Place> LeaseTable::next() const {
  const int64_t begin = free_.empty() ? next_ : free_.front().begin;
  if (begin >= Limit()) return {};
  return Place{begin / run_.samples, begin % run_.samples};
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
    const int64_t first = it->second.epoch * run_.samples;
    const Stretch stretch{first + it->second.begin, first + it->second.end};
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
  const int64_t limit = Limit();
  int64_t positions = std::max<int64_t>(0, limit - next_);
  for (const Stretch& s : free_) {
    positions += std::max<int64_t>(0, std::min(s.end, limit) - s.begin);
  }
  return positions;
}

bool LeaseTable::epoch_over() const {
  if (run_.border == EpochBorder::kOpen) return closed_positions_ >= (epoch_ + 1) * run_.samples;
  return !next() && open_.empty();
}

void LeaseTable::NextEpoch() {
  TRIREME_ASSERT(epoch_over());
  ++epoch_;
}

// epoch, then relative to its first position: what was never taken begins here; closed positions of
// the run, number of free stretches, then begin and end of each.
std::vector<int64_t> LeaseTable::Save() const {
  const int64_t first = epoch_ * run_.samples;
  std::vector<int64_t> out{epoch_, next_ - first, closed_positions_,
                           int64_t(free_.size() + open_.size())};
  for (const Stretch& s : free_) out.insert(out.end(), {s.begin - first, s.end - first});
  for (const auto& [id, lease] : open_) {
    const int64_t shift = (lease.epoch - epoch_) * run_.samples;
    out.insert(out.end(), {lease.begin + shift, lease.end + shift});
  }
  return out;
}

void LeaseTable::Load(std::span<const int64_t> saved, int64_t next_id) {
  const auto require = [&](bool ok) {
    if (ok) return;
    throw Error("the saved leases do not fit a run of {} samples per epoch", run_.samples);
  };
  constexpr int64_t kMost = int64_t(1) << 40;
  require(saved.size() >= 4);
  const int64_t epoch = saved[0], closed = saved[2], count = saved[3];
  require(epoch >= 0 && epoch <= kMost && saved[1] >= 0 && saved[1] <= kMost);
  require(run_.samples <= std::numeric_limits<int64_t>::max() / 4 / (epoch + 1));
  const int64_t first = epoch * run_.samples, next = first + saved[1];
  require(count >= 0 && uint64_t(count) == (saved.size() - 4) / 2 && saved.size() % 2 == 0);
  std::deque<Stretch> stretches;
  int64_t missing = 0;
  for (size_t i = 4; i < saved.size(); i += 2) {
    require(saved[i] >= -first && saved[i] < saved[i + 1] && saved[i + 1] <= saved[1]);
    stretches.push_back({first + saved[i], first + saved[i + 1]});
    missing += saved[i + 1] - saved[i];
  }
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < stretches.size(); ++i) {
    require(stretches[i - 1].end <= stretches[i].begin);
  }
  require(closed == next - missing);
  // The epoch of a barrier holds the first position that does not count.
  const int64_t counted_to = stretches.empty() ? next : stretches.front().begin;
  const bool open = run_.border == EpochBorder::kOpen;
  epoch_ = std::min(epoch, (open ? closed : counted_to) / run_.samples);
  next_ = next;
  closed_positions_ = closed;
  next_id_ = next_id;
  open_.clear();
  free_ = std::move(stretches);
}

}  // namespace trireme
