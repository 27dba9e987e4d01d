#include "pretend/handover.h"

#include <algorithm>

#include "base/assert.h"

namespace trireme {

void Handover::operator()(std::span<double> values) {
  std::unique_lock lock(mutex_);
  if (state_ == State::kFailed) return;
  host_.assign(values.begin(), values.end());
  state_ = State::kGiven;
  changed_.notify_all();
  changed_.wait(lock, [this] { return state_ != State::kGiven; });
  if (state_ == State::kFailed) return;
  std::ranges::copy(host_, values.begin());
  state_ = State::kIdle;
}

void Handover::Close() {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kFailed) return;
  state_ = State::kClosed;
  changed_.notify_all();
}

void Handover::Serve(Sum sum) {
  std::unique_lock lock(mutex_);
  TRIREME_ASSERT(state_ != State::kFailed);  // an error ends the run
  while (true) {
    changed_.wait(lock, [this] { return state_ == State::kGiven || state_ == State::kClosed; });
    if (state_ == State::kClosed) break;
    try {
      sum(host_);
    } catch (...) {
      state_ = State::kFailed;
      changed_.notify_all();
      throw;
    }
    state_ = State::kSummed;
    changed_.notify_all();
  }
  state_ = State::kIdle;
}

}  // namespace trireme
