#pragma once
#include <memory>
#include <vector>

#include "strategy/exchange/exchange.h"
#include "strategy/inner/inner.h"
#include "strategy/work/shared_work_queue.h"
#include "strategy/work/work_source.h"

namespace trireme {

// Of a state that all workers write at any time: what is evaluated and saved is an image of one
// moment, together with the positions that are in it.
class SharedState : public Exchange {
 public:
  SharedState(std::unique_ptr<SharedWorkQueue> queue, const Inner& inner)
      : queue_(std::move(queue)), inner_(inner) {}
  void Snapshot(Replica& replica, Slice into) override;
  std::vector<ClientStats> worker_stats() const override;

  // For the source of work.
  SharedWorkQueue& queue() { return *queue_; }
  int64_t image_taken() const { return image_taken_; }  // positions that are in it
  void Outdate() { image_is_new_ = false; }
  void TakeImage(Replica& replica);

 private:
  const std::unique_ptr<SharedWorkQueue> queue_;
  const Inner& inner_;
  Buffer image_;
  int64_t image_taken_ = 0;
  std::vector<ClientStats> image_workers_;
  bool image_is_new_ = false;
};

// Work for whoever is free, from a counter that the workers share.
class SharedWork : public WorkSource {
 public:
  explicit SharedWork(SharedState& state) : state_(state) {}
  Turn Next(Replica* replica, int64_t, Work& work) override {
    state_.Outdate();
    return state_.queue().Next(work, [&] { state_.TakeImage(*replica); });
  }
  void Done() override { state_.queue().Done(); }
  void Stop() override { state_.queue().Stop(); }
  void End() override { state_.queue().End(); }
  void Save(StateWriter& writer) const override;
  void Load(const StateReader& reader) override;

 private:
  SharedState& state_;
};

}  // namespace trireme
