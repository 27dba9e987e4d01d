#include "strategy/inner/pulse.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/start_thread.h"
#include "strategy/step/tags.h"
#include "transport/collective/broadcast.h"

namespace trireme {
namespace {

constexpr auto kBetweenBeats = std::chrono::milliseconds(200);

}  // namespace

GroupPulse::GroupPulse(Group& group, std::function<void()> look, std::function<void()> lost)
    : group_(group), look_(std::move(look)), lost_(std::move(lost)) {
  if (group.size() == 1) return;  // there is nobody to lose
  thread_ = StartThread("the thread that watches over the sums of devices", [this] { Beat(); });
}

GroupPulse::~GroupPulse() {
  if (thread_.joinable()) group_.Abort("left in the middle of a run");
}

void GroupPulse::Check() const {
  if (finished_.load(std::memory_order_acquire)) std::rethrow_exception(error_);
}

void GroupPulse::Leave() noexcept {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void GroupPulse::Beat() {
  try {
    for (;;) {
      bool leaves;
      {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, kBetweenBeats, [this] { return leaving_; });
        leaves = leaving_;
      }
      look_();
      const auto left = AllGather(group_, kTagPulse, char(leaves));
      if (std::ranges::all_of(left, [](char each) { return each != 0; })) return;
    }
  } catch (const std::exception& error) {
    error_ = std::current_exception();
    finished_.store(true, std::memory_order_release);
    group_.Abort(error.what());  // if it was no other rank
    lost_();
  }
}

}  // namespace trireme
