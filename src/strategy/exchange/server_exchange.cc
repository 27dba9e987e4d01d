#include "strategy/exchange/server_exchange.h"

#include <utility>

#include "base/error.h"
#include "flat/arithmetic.h"

namespace trireme {

void ServerExchange::Begin(Replica& r) {
  metrics_ = {r.device, Layout::kStepMetrics};
  scale_ = {r.device, UpdateScale::kSize};
  merge_->Begin(r);
}

void ServerExchange::AfterStep(Replica& r) {
  if (r.updater.scales_loss()) ReadScale(r);
  if (overflowed_) return;
  open_.insert(open_.end(), r.work.leases.begin(), r.work.leases.end());
  CountLoss(r);
  const bool meets = MeetsAfter(++since_) || !client_->centre().HasRoom(open_);
  merge_->AfterStep(r, meets);
  if (meets) Meet(r);
}

// What is pushed is unscaled, and finite.
void ServerExchange::ReadScale(Replica& r) {
  if (r.work.batch == 0) return;  // nobody has looked
  flat::Get(r.queue, r.updater.scale(), scale_);
  r.queue.Sync();
  const float inverse = scale_[UpdateScale::kInverse], next = scale_[UpdateScale::kLoss];
  overflowed_ = inverse == 0;
  head_.overflows += overflowed_;
  if (overflowed_ && next <= LossScaling::kLeast) {
    throw Error(
        "the gradients overflow fp16 even with a loss scale of {:g}: values between layers are too "
        "large; use --precision bf16 or f32, or a lower optimizer.lr",
        next);
  }
  if (overflowed_ || !merge_->pushes_gradients()) return;
  flat::Scale(r.queue, inverse, r.summands[0].Sub(0, r.layout.weights));
}

// For the push that names this step's leases.
void ServerExchange::CountLoss(Replica& r) {
  flat::Get(r.queue, r.summands[0].Sub(r.layout.loss(), Layout::kStepMetrics), metrics_);
  r.queue.Sync();
  head_.loss_sum += double(metrics_[0]) * double(r.work.batch);
  head_.correct += double(metrics_[1]);
}

void ServerExchange::Meet(Replica& replica) {
  since_ = 0;
  if (open_.empty()) return;
  const double waited_s = client_->waited_s();
  head_.waited_s = waited_s - std::exchange(told_waited_s_, waited_s);
  merge_->Meet(replica, head_, open_);
  open_.clear();
  head_ = {};
}

void ServerExchange::Drain(Replica& replica) {
  Meet(replica);
  client_->centre().Settle();
}

void ServerExchange::Discard(Replica& replica) {
  overflowed_ = false;
  open_.clear();
  head_ = {};
  since_ = 0;
  merge_->Reload(replica);
  forgets_ = true;
}

void ServerExchange::Snapshot(Replica& replica, Slice into) {
  Centre& centre = client_->centre();
  centre.Put(replica.queue, centre.FetchNow(into.size), into);
}

}  // namespace trireme
