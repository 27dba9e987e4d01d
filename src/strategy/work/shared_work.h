#pragma once
#include <memory>

#include "strategy/exchange/shared_state.h"
#include "strategy/work/shared_work_queue.h"
#include "strategy/work/work_source.h"

namespace trireme {

// Work for whoever is free, from a counter that the workers share.
class SharedWork : public WorkSource {
 public:
  SharedWork(std::unique_ptr<SharedWorkQueue> queue, SharedState& state)
      : queue_(std::move(queue)), state_(state) {}
  Turn Next(Replica* replica, int64_t, Work& work) override {
    state_.Outdate();
    return queue_->Next(work, [&] { state_.TakeImage(*replica); });
  }
  void Done() override { queue_->Done(); }
  void Stop() override { queue_->Stop(); }
  void End() override { queue_->End(); }
  void Save(StateWriter& writer) const override;
  void Load(const StateReader& reader) override;

 private:
  const std::unique_ptr<SharedWorkQueue> queue_;
  SharedState& state_;
};

}  // namespace trireme
