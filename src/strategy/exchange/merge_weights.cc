#include "strategy/exchange/merge_weights.h"

#include "flat/arithmetic.h"

namespace trireme {

void MergeWeights::Begin(Replica& r) {
  version_ = TakeCentre(client_, r);
  moved_ = true;
}

void MergeWeights::Meet(Replica& r, PushHead head, std::span<const int64_t> leases) {
  head.version = version_;
  std::vector<float> weights(r.state.size);
  flat::Get(r.queue, r.state, weights);
  client_.Push(r.queue.Record(), head, std::move(weights), leases);
  const auto centre = client_.Answered(r.state.size);
  if (!centre) return;  // void
  flat::Put(r.queue, centre->state, r.state);
  version_ = centre->version;
  moved_ = true;
  if (forgets_) r.updater.Reset(r.queue);
  r.queue.Sync();
}

void MergeWeights::Reload(Replica& r) {
  version_ = TakeCentre(client_, r);
  moved_ = true;
  r.updater.Reset(r.queue);
}

}  // namespace trireme
