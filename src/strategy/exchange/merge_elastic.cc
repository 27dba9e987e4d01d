#include "strategy/exchange/merge_elastic.h"

#include "flat/arithmetic.h"

namespace trireme {

void MergeElastic::Begin(Replica& r) {
  copy_ = Buffer(r.device, r.state.size);
  pull_ = Buffer(r.device, r.state.size);
  moved_ = true;
  TakeCentre(centre_, r);
}

void MergeElastic::Meet(Replica& r, PushHead head, std::span<const int64_t> leases) {
  Centre::Snapshot centre = centre_.Fetch(r.state.size, waits_);
  head.version = centre.version;
  centre_.Put(r.queue, centre, copy_);
  // pull = alpha * (weights - centre);  weights -= pull
  const float alpha = alpha_ > 0 ? alpha_ : 0.9f / float(centre.clients);
  flat::ElasticPull(r.queue, alpha, copy_, r.state, pull_);
  moved_ = true;
  // The centre moves the other way.
  centre_.Push(r.queue, pull_, head, leases, std::move(centre.state));
}

void MergeElastic::Reload(Replica& r) {
  TakeCentre(centre_, r);
  moved_ = true;
  r.updater.Reset(r.queue);
}

}  // namespace trireme
