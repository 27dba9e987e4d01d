#include "strategy/exchange/merge_neighbours.h"

#include <cstring>

#include "flat/arithmetic.h"
#include "flat/staging.h"

namespace trireme {

void MergeNeighbours::Begin(Replica& r) {
  written_ = Buffer(r.device, r.state.size);
  theirs_ = Buffer(r.device, r.state.size);
  moved_by_ = Buffer(r.device, r.state.size);
  span_ = Buffer(r.device, r.layout.weights);
  product_ = Buffer(r.device, flat::kDoubleFloats);
  inboxes_->Begin(r.state.size);
  Take(r);
}

void MergeNeighbours::Take(Replica& r) {
  TakeCentre(centre_, r);
  flat::Copy(r.queue, r.state, written_);
  moved_ = true;
}

void MergeNeighbours::Meet(Replica& r, PushHead head, std::span<const int64_t> leases) {
  if (const auto theirs = inboxes_->Take(r.state.size)) {
    centre_.Put(r.queue, {.state = *theirs}, theirs_);
    if (mixes_ == Mixes::kAll || Nearer(r)) {  // weights += alpha (theirs - weights)
      flat::Blend(r.queue, alpha_, theirs_, 1 - alpha_, r.state);
      moved_ = true;
    }
  }
  // The centre moves by this worker's part of a mean.
  flat::Copy(r.queue, r.state, moved_by_);
  flat::Blend(r.queue, -part_, written_, part_, moved_by_);
  flat::Copy(r.queue, r.state, written_);
  head.version = centre_.newest();
  centre_.Push(r.queue, moved_by_, head, leases);
  inboxes_->Send(r.queue, r.state);
}

// |weights - theirs| < |written - theirs|, for which with move = weights - written
// move . (weights + written - 2 theirs) < 0.
bool MergeNeighbours::Nearer(Replica& r) {
  const size_t weights = r.layout.weights;
  const Slice move = moved_by_.slice().Sub(0, weights), now = r.state.Sub(0, weights);
  flat::Copy(r.queue, now, move);
  flat::Axpy(r.queue, -1, written_.slice().Sub(0, weights), move);
  flat::Copy(r.queue, now, span_);
  flat::Axpy(r.queue, 1, written_.slice().Sub(0, weights), span_);
  flat::Axpy(r.queue, -2, theirs_.slice().Sub(0, weights), span_);
  flat::Dot(r.queue, move, span_, product_);
  float bits[flat::kDoubleFloats];
  flat::GetNow(r.queue, product_, bits);
  double product = 0;
  std::memcpy(&product, bits, sizeof(product));
  return product < 0;
}

void MergeNeighbours::Reload(Replica& r) {
  Take(r);
  r.updater.Reset(r.queue);
}

}  // namespace trireme
