#include "strategy/merge_elastic.h"

#include "flat/arithmetic.h"

namespace trireme {

void MergeElastic::Begin(Replica& r) {
  centre_ = Buffer(r.device, r.state.size);
  pull_ = Buffer(r.device, r.state.size);
  TakeCentre(r);
}

void MergeElastic::Meet(Replica& r, std::span<const int64_t> leases) {
  Client::Centre centre = client_.Fetch(r.state.size);
  flat::Put(r.queue, centre.state, centre_);
  // pull = alpha * (weights - centre);  weights -= pull
  flat::ElasticPull(r.queue, alpha_, centre_, r.state, pull_);
  flat::Get(r.queue, pull_, centre.state);
  client_.Push(r.queue.Record(), std::move(centre), leases);  // the centre moves the other way
}

void MergeElastic::Reload(Replica& r) {
  TakeCentre(r);
  r.updater.Reset(r.queue);
}

void MergeElastic::TakeCentre(Replica& r) {
  const Client::Centre centre = client_.Fetch(r.state.size);
  flat::Put(r.queue, centre.state, r.state);
  r.queue.Sync();
}

}  // namespace trireme
