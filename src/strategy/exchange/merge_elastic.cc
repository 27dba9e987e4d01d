#include "strategy/exchange/merge_elastic.h"

#include "flat/arithmetic.h"

namespace trireme {

void MergeElastic::Begin(Replica& r) {
  centre_ = Buffer(r.device, r.state.size);
  pull_ = Buffer(r.device, r.state.size);
  moved_ = true;
  TakeCentre(client_, r);
}

void MergeElastic::Meet(Replica& r, PushHead head, std::span<const int64_t> leases) {
  ServerClient::Snapshot centre = client_.Fetch(r.state.size, waits_);
  head.version = centre.version;
  flat::Put(r.queue, centre.state, centre_);
  // pull = alpha * (weights - centre);  weights -= pull
  const float alpha = alpha_ > 0 ? alpha_ : 0.9f / float(centre.clients);
  flat::ElasticPull(r.queue, alpha, centre_, r.state, pull_);
  moved_ = true;
  flat::Get(r.queue, pull_, centre.state);
  client_.Push(r.queue.Record(), head, std::move(centre.state), leases);  // the centre moves the
                                                                          // other way
}

void MergeElastic::Reload(Replica& r) {
  TakeCentre(client_, r);
  moved_ = true;
  r.updater.Reset(r.queue);
}

}  // namespace trireme
