#pragma once
#include "transport/collective/lanes.h"

namespace trireme {

// A sum in order in the order of ranks: ((v0 + v1) + v2) + ... Pieces run along the ranks, each
// adds its own, and the last sends the finished ones back the same way. While piece k goes forward
// at a rank, piece k - lag comes back: it had time for the way to the end, so nobody waits for it.
template <class W>
void ChainSum(const Lane<W>& lane, std::span<typename W::Value> values) {
  const int rank = lane.rank(), last = lane.size() - 1;
  const auto piece = [&](size_t k) { return Piece(values, k, lane.piece); };
  const size_t pieces = Pieces(values.size(), lane.piece);
  // One more than the way there and back: a piece has left before its result is expected in its
  // place.
  const size_t lag = rank == last ? 0 : 2 * size_t(last - rank) + 1;
  Arriving<W, Then::kAdd> sums(lane, rank - 1, 0);
  Leaving<W> forward(lane, rank + 1, 2);
  Arriving<W, Then::kReplace> results(lane, rank + 1, 4);
  Leaving<W> back(lane, rank - 1, 6);

  if (rank > 0 && pieces > 0) sums.Expect(piece(0));
  for (size_t k = 0; k < pieces + lag; ++k) {
    if (k < pieces) {
      if (rank > 0 && k + 1 < pieces) sums.Expect(piece(k + 1));
      if (rank > 0) sums.Take();
      if (rank < last) forward.Send(piece(k));
      if (rank == last) W::Settle(piece(k));
    }
    if (k == pieces) forward.Drain();
    if (rank < last && k + 1 >= lag && k + 1 - lag < pieces) results.Expect(piece(k + 1 - lag));
    if (k >= lag && k - lag < pieces) {
      if (rank < last) results.Take();
      if (rank > 0) back.Send(piece(k - lag));
    }
  }
  back.Drain();
}

// values = those of `root`, by way of all ranks in a chain that begins there.
template <class W>
void ChainBroadcast(const Lane<W>& lane, int root, std::span<typename W::Value> values) {
  const int n = lane.size(), place = (lane.rank() - root + n) % n;
  const auto piece = [&](size_t k) { return Piece(values, k, lane.piece); };
  const size_t pieces = Pieces(values.size(), lane.piece);
  Arriving<W, Then::kReplace> in(lane, (lane.rank() + n - 1) % n, 0);
  Leaving<W> out(lane, (lane.rank() + 1) % n, 2);
  if (place > 0 && pieces > 0) in.Expect(piece(0));
  for (size_t k = 0; k < pieces; ++k) {
    if (place > 0 && k + 1 < pieces) in.Expect(piece(k + 1));
    if (place > 0) in.Take();
    if (place + 1 < n) out.Send(piece(k));
  }
  out.Drain();
}

}  // namespace trireme
