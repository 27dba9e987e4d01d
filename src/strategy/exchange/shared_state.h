#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "base/function_ref.h"
#include "strategy/exchange/exchange.h"
#include "strategy/inner/inner.h"

namespace trireme {

// Of a state that all workers write at any time: what is evaluated and saved is an image of one
// moment, together with the positions that are in it.
class SharedState : public Exchange {
 public:
  // Of whoever hands out work.
  struct Moment {
    std::function<void(FunctionRef<void()> look)> quiet;  // calls `look` while nobody works
    std::function<int64_t()> taken;                       // positions so far
  };
  SharedState(const Inner& inner, Moment moment) : inner_(inner), moment_(std::move(moment)) {}
  void Snapshot(Replica& replica, Slice into) override;
  std::vector<ClientStats> worker_stats() const override;

  // For the source of work.
  int64_t image_taken() const { return image_taken_; }  // positions that are in it
  void Outdate() { image_is_new_ = false; }
  void TakeImage(Replica& replica);

 private:
  const Inner& inner_;
  const Moment moment_;
  Buffer image_;
  int64_t image_taken_ = 0;
  std::vector<ClientStats> image_workers_;
  bool image_is_new_ = false;
};

}  // namespace trireme
