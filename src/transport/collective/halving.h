#pragma once
#include <bit>

#include "transport/collective/lanes.h"

namespace trireme {

// Recursive halving, then doubling (Rabenseifner 2004). In each step a rank and its partner split
// what they have: each sends one half and adds the other. Partners are near first, when there is
// most to send. Then everything is sent back in the other order.
//
// It wants a power of two. The excess comes first: of the first ranks each odd one hands its values
// to the even one before it, and gets the result at the end.
class HalvingPlaces {
 public:
  explicit HalvingPlaces(int n) : places_(int(std::bit_floor(unsigned(n)))), excess_(n - places_) {}
  int places() const { return places_; }
  bool paired(int rank) const { return rank < 2 * excess_; }
  int PlaceOf(int rank) const { return paired(rank) ? rank / 2 : rank - excess_; }
  int RankAt(int place) const { return place < excess_ ? 2 * place : place + excess_; }

 private:
  const int places_, excess_;
};

template <class W>
void HalvingSumOfPlaces(const Lane<W>& lane, const HalvingPlaces& map,
                        std::span<typename W::Value> values) {
  const int n = map.places(), place = map.PlaceOf(lane.rank());
  const auto part = [&](int begin, int count) { return Stretch(values, begin, n, count); };
  int begin = 0;  // of the stretches that this rank still adds up
  for (int reach = 1, half = n / 2; reach < n; reach *= 2, half /= 2) {
    const int partner = map.RankAt(place ^ reach);
    const bool upper = place & reach;
    const int kept = begin + (upper ? half : 0), given = begin + (upper ? 0 : half);
    Exchange<W, Then::kAdd>(lane, partner, part(given, half), partner, part(kept, half));
    begin = kept;
  }
  W::Settle(part(begin, 1));
  for (int reach = n / 2, count = 1; reach > 0; reach /= 2, count *= 2) {
    const int partner = map.RankAt(place ^ reach);
    const bool upper = place & reach;
    const int other = upper ? begin - count : begin + count;
    Exchange<W, Then::kReplace>(lane, partner, part(begin, count), partner, part(other, count));
    if (upper) begin = other;
  }
}

template <class W>
void HalvingSum(const Lane<W>& lane, std::span<typename W::Value> values) {
  const HalvingPlaces map(lane.size());
  const int rank = lane.rank();
  if (map.paired(rank) && rank % 2 == 1) {
    Exchange<W, Then::kAdd>(lane, rank - 1, values, rank, {});
    Exchange<W, Then::kReplace>(lane, rank, {}, rank - 1, values);
    return;
  }
  if (map.paired(rank)) Exchange<W, Then::kAdd>(lane, rank, {}, rank + 1, values);
  HalvingSumOfPlaces(lane, map, values);
  if (map.paired(rank)) Exchange<W, Then::kReplace>(lane, rank + 1, values, rank, {});
}

}  // namespace trireme
