#include "strategy/batch/portion_board.h"

#include <algorithm>
#include <limits>

namespace trireme {
namespace {

constexpr int64_t kEndless = std::numeric_limits<int64_t>::max() / 2;
constexpr int64_t kFew = 8;  // portions for each worker

}  // namespace

PortionBoard::PortionBoard(int portions, bool backups)
    : backups_(backups),
      leases_({.samples = portions, .total = kEndless, .size = 1}, 0),
      holders_(size_t(portions)) {}

void PortionBoard::Begin() {
  if (begun_) leases_.NextEpoch();
  begun_ = true;
  std::ranges::fill(holders_, Holders{});
}

std::optional<int> PortionBoard::Take(int worker) {
  if (const auto lease = leases_.Take(worker)) {
    holders_[size_t(lease->begin)] = {lease->id, kNobody};
    return int(lease->begin);
  }
  if (!backups_) return {};
  // The oldest: who has it needs longest.
  int64_t oldest = -1;
  for (size_t p = 0; p < holders_.size(); ++p) {
    const Holders& by = holders_[p];
    if (by.lease < 0 || !leases_.Open(by.lease) || by.second != kNobody) continue;
    if (leases_.Owns(by.lease, worker)) continue;
    if (oldest < 0 || by.lease < holders_[size_t(oldest)].lease) oldest = int64_t(p);
  }
  if (oldest < 0) return {};
  holders_[size_t(oldest)].second = worker;
  ++given_twice_;
  return int(oldest);
}

bool PortionBoard::few_left(int workers) const { return leases_.untaken() <= kFew * workers; }

bool PortionBoard::Holds(int worker, int64_t portion) const {
  if (portion < 0 || portion >= int64_t(holders_.size())) return false;
  const Holders& by = holders_[size_t(portion)];
  if (by.lease < 0 || !leases_.Open(by.lease)) return false;
  return by.second == worker || leases_.Owns(by.lease, worker);
}

bool PortionBoard::Answer(int worker, std::span<const int64_t> portions) {
  std::vector<int64_t> sorted(portions.begin(), portions.end());
  std::ranges::sort(sorted);
  const bool twice = std::ranges::adjacent_find(sorted) != sorted.end();
  const auto held = [&](int64_t portion) { return Holds(worker, portion); };
  if (twice || !std::ranges::all_of(sorted, held)) {
    leases_.Drop(worker);
    return false;
  }
  for (const int64_t portion : sorted) leases_.Close(holders_[size_t(portion)].lease);
  return true;
}

}  // namespace trireme
