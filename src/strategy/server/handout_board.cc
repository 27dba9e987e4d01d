#include "strategy/server/handout_board.h"

#include <span>
#include <utility>

namespace trireme {
namespace {

enum Place : size_t { kEpoch, kStopped, kRead, kFirstId, kTable };

}  // namespace

std::vector<int64_t> HandoutNews::Pack() const {
  std::vector<int64_t> values{epoch, stopped, read, first_id};
  values.insert(values.end(), table.begin(), table.end());
  return values;
}

std::optional<HandoutNews> HandoutNews::Unpack(std::vector<int64_t> values) {
  if (values.size() < kTable) return {};
  return HandoutNews{.epoch = values[kEpoch],
                     .stopped = values[kStopped] != 0,
                     .read = values[kRead],
                     .first_id = values[kFirstId],
                     .table = {values.begin() + kTable, values.end()}};
}

void HandoutBoard::Begin(const LeaseTable& table, uint64_t read) {
  tickets_ = memory_.Create(kTicketRegion, RegionType::kI64, 1);
  told_ = int64_t(read);
  const HandoutNews news{
      .epoch = table.epoch(), .read = told_, .first_id = table.next_id(), .table = table.Save()};
  const std::vector<int64_t> values = news.Pack();
  board_ = memory_.Create(kBoardRegion, RegionType::kI64, values.size());
  memory_.Put(board_, 0, values).Wait();
}

void HandoutBoard::Read(uint64_t version) {
  if (int64_t(version) < told_ + kMostUnread / 4) return;
  told_ = int64_t(version);
  Beat();
}

void HandoutBoard::Beat() { Put(kRead, told_); }

void HandoutBoard::Allow(int64_t epoch) { Put(kEpoch, epoch); }

// The board is for those who wait for an epoch, the number for all others.
void HandoutBoard::Stop() {
  if (std::exchange(stopped_, true)) return;
  memory_.FetchAdd(tickets_, 0, kHandoutStopped);
  Put(kStopped, 1);
}

void HandoutBoard::Put(uint64_t index, int64_t value) {
  memory_.Put(board_, index, std::span<const int64_t>(&value, 1)).Wait();
}

}  // namespace trireme
