#include "strategy/exchange/merge_moves.h"

#include "flat/arithmetic.h"

namespace trireme {

void MergeMoves::Begin(Replica& r) {
  base_ = Buffer(r.device, r.state.size);
  move_ = Buffer(r.device, r.state.size);
  if (shared_) own_ = Buffer(r.device, r.state.size);
  const Centre::Snapshot first = centre_.Fetch(r.state.size);  // opens it for all, also to add
  if (fetches()) Take(r, first);
  if (shared_) shared_->Meet();  // nobody steps before
}

// Others write shared weights meanwhile, so the update is made on a copy: the difference is this
// worker's.
void MergeMoves::Update(Replica& r, const Gradient& sum) {
  if (!shared_) return Merge::Update(r, sum);
  flat::Copy(r.queue, r.state, base_);
  flat::Copy(r.queue, base_, own_);
  r.updater.Apply(r.queue, r.work.step, sum, own_);
  flat::Axpy(r.queue, -1, base_, own_);
  flat::Add(r.queue, own_, r.state);
  flat::Add(r.queue, own_, move_);
}

void MergeMoves::BeforeStep(Replica& r, int) {
  TakeNews(r);
  if (shared_) version_ = shared_->version();
}

void MergeMoves::AfterStep(Replica&, bool) {
  if (steps_++ == 0) from_ = version_;
}

// The push goes before the fetch, so the weights that come hold it, and none that follows.
void MergeMoves::Meet(Replica& r, PushHead head, std::span<const int64_t> leases) {
  centre_.Settle();
  TakeNews(r);
  head.version = from_;
  steps_ = 0;
  if (!shared_) {
    flat::Copy(r.queue, r.state, move_);
    flat::Axpy(r.queue, -1, base_, move_);
    flat::Copy(r.queue, r.state, base_);
  }
  centre_.Push(r.queue, move_, head, leases);
  if (shared_) flat::Fill(r.queue, 0, move_);
  if (fetches()) centre_.Prefetch();
}

void MergeMoves::TakeNews(Replica& r) {
  if (!fetches()) return;
  if (const auto centre = centre_.Prefetched(r.state.size)) Take(r, *centre);
}

// weights = centre + (weights - base);  base = centre
void MergeMoves::Take(Replica& r, const Centre::Snapshot& centre) {
  moved_ = true;
  version_ = centre.version;
  if (shared_) return shared_->Put(r, centre);
  const bool ahead = steps_ > 0;
  if (ahead) {
    flat::Copy(r.queue, r.state, move_);
    flat::Axpy(r.queue, -1, base_, move_);
  }
  centre_.Put(r.queue, centre, base_);
  flat::Copy(r.queue, base_, r.state);
  if (ahead) flat::Add(r.queue, move_, r.state);
}

void MergeMoves::Reload(Replica& r) {
  steps_ = 0;
  Take(r, centre_.FetchNow(r.state.size));
  if (shared_) flat::Fill(r.queue, 0, move_);
  r.updater.Reset(r.queue);
}

}  // namespace trireme
