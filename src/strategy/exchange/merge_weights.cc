#include "strategy/exchange/merge_weights.h"

namespace trireme {

void MergeWeights::Begin(Replica& r) {
  version_ = TakeCentre(centre_, r);
  moved_ = true;
}

void MergeWeights::Meet(Replica& r, PushHead head, std::span<const int64_t> leases) {
  head.version = version_;
  centre_.Push(r.queue, r.state, head, leases);
  if (!rounds_) {
    const auto news = centre_.News(r.state.size);
    if (news && news->version > version_) Take(r, *news);
    return;
  }
  const auto centre = centre_.Answered(r.state.size);
  if (!centre) return;  // void
  Take(r, *centre);
  r.updater.Reset(r.queue);  // as in rounds of local SGD
}

void MergeWeights::Take(Replica& r, const Centre::Snapshot& centre) {
  centre_.Put(r.queue, centre, r.state);
  version_ = centre.version;
  moved_ = true;
}

void MergeWeights::Reload(Replica& r) {
  version_ = TakeCentre(centre_, r);
  moved_ = true;
  r.updater.Reset(r.queue);
}

}  // namespace trireme
