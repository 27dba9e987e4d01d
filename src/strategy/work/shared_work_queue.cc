#include "strategy/work/shared_work_queue.h"

#include <algorithm>

#include "base/error.h"
#include "strategy/step/tags.h"
#include "transport/collective/broadcast.h"

namespace trireme {
namespace {

constexpr int64_t kStopped = int64_t(1) << 62;

}  // namespace

SharedWorkQueue::SharedWorkQueue(Group& group, const Plan& plan, int64_t lease)
    : group_(group), plan_(plan), lease_(lease), total_(PositionsOf(plan)) {
  const size_t bytes = sizeof(Board) + size_t(group.size()) * sizeof(Board::Seat);
  board_ =
      reinterpret_cast<Board*>(AllocateForAll(group, kTagWorkQueue, bytes / sizeof(float)).data());
}

void SharedWorkQueue::Load(int64_t taken, int64_t epochs_told) {
  if (taken < 0 || taken > total_ || epochs_told < 0 || epochs_told > taken / plan_.samples) {
    throw Error("the checkpoint's {} positions in {} epochs do not fit a run of {} positions",
                taken, epochs_told, total_);
  }
  told_ = epochs_told;
  if (group_.rank() == 0) board_->taken.store(taken);  // before all meet in the strategy's Begin
}

int64_t SharedWorkQueue::taken() const { return board_->taken.load() & ~kStopped; }

int64_t SharedWorkQueue::EpochEnd() const { return std::min((told_ + 1) * plan_.samples, total_); }

// Also true for those who come late: nobody goes on before all know of it. A run that ends within
// an epoch has no end of it to tell.
bool SharedWorkQueue::EpochIsOver() const {
  return EpochEnd() == (told_ + 1) * plan_.samples && taken() >= EpochEnd();
}

Turn SharedWorkQueue::Next(Work& work, FunctionRef<void()> drained) {
  Board::Seat& seat = board_->seat(group_.rank());
  for (;;) {
    // The mark first, then the look: Quiet does it the other way round, so one sees the other.
    seat.works.store(1);
    if (!board_->quiet.load()) break;
    seat.works.store(0);
    group_.shared_memory()->Await(0, [&] { return !board_->quiet.load(); });
  }
  if (TryTake(work)) return Turn::kStep;
  seat.works.store(0);
  if (!EpochIsOver()) return Turn::kEnd;
  MeetAtEpochEnd(drained);
  return Turn::kEpochEnd;
}

bool SharedWorkQueue::TryTake(Work& work) {
  int64_t begin = board_->taken.load(), end = 0;
  do {
    if (begin >= EpochEnd()) return false;  // or stopped
    end = std::min(begin + lease_, EpochEnd());
  } while (!board_->taken.compare_exchange_weak(begin, end));
  const int64_t first = told_ * plan_.samples;
  LeasedWork(plan_, told_, begin - first, end - first, work);
  return true;
}

void SharedWorkQueue::Done() {
  board_->seat(group_.rank()).works.store(0, std::memory_order_release);
}

void SharedWorkQueue::MeetAtEpochEnd(FunctionRef<void()> drained) {
  Barrier(group_, kTagWorkQueue);
  if (group_.rank() == 0 && drained) drained();
  Barrier(group_, kTagWorkQueue);
  ++told_;
}

void SharedWorkQueue::Stop() { board_->taken.fetch_or(kStopped); }

// From Stop on no number changes, so all see the same ends of epochs before the last meeting.
void SharedWorkQueue::End() {
  Stop();
  while (EpochIsOver()) MeetAtEpochEnd({});
  Barrier(group_, kTagWorkQueue);
}

void SharedWorkQueue::Quiet(FunctionRef<void()> look) {
  board_->quiet.store(1);
  for (int w = 0; w < group_.size(); ++w) {
    if (w == group_.rank()) continue;
    group_.shared_memory()->Await(w, [&] { return !board_->seat(w).works.load(); });
  }
  look();
  board_->quiet.store(0);
}

}  // namespace trireme
