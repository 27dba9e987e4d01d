#include "strategy/exchange/merge_elastic.h"

#include <utility>

#include "base/clock.h"
#include "flat/arithmetic.h"

namespace trireme {

void MergeElastic::Begin(Replica& r) {
  copy_ = Buffer(r.device, r.state.size);
  pull_ = Buffer(r.device, r.state.size);
  moved_ = true;
  TakeCentre(centre_, r);
}

void MergeElastic::BeforeStep(Replica&, int left) {
  const double now = Now(), took = now - std::exchange(began_, now);
  if (took < now) step_s_ = step_s_ > 0 ? 0.5 * (step_s_ + took) : took;
  if (waits_ || asked_ || left < 1) return;
  constexpr double kMargin = 1.25;  // the network has others, too
  const bool in_time = step_s_ > 0 && (left - 1) * step_s_ > kMargin * centre_.fetch_s();
  if (left > 1 && (step_s_ == 0 || in_time)) return;
  asked_ = true;
  centre_.Prefetch();
}

void MergeElastic::Meet(Replica& r, PushHead head, std::span<const int64_t> leases) {
  asked_ = false;
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
  asked_ = false;
  TakeCentre(centre_, r);
  moved_ = true;
  r.updater.Reset(r.queue);
}

}  // namespace trireme
