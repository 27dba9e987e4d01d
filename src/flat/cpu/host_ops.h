#pragma once
#include <mutex>

#include "base/function_ref.h"
#include "flat/arithmetic.h"
#include "flat/cpu/loops.h"

namespace trireme {

class Team;

// A team that the queues of a device share. Whoever comes first has it; the others work alone
// meanwhile, which changes no bits.
struct SharedTeam {
  Team& team;
  std::mutex mutex = {};  // held while the team works
};

}  // namespace trireme

// Every entry of a FlatTable as a plain function on memory that the caller may touch; it is done
// when it returns. Long slices are split over `team` (may be null) without changing bits.
namespace trireme::host {

void Put(SharedTeam* team, const float* host, Slice to);
void Get(SharedTeam* team, Slice from, float* host);
void Fill(SharedTeam* team, float value, Slice to);
void Copy(SharedTeam* team, Slice from, Slice to);
void Add(SharedTeam* team, Slice from, Slice to);
void Blend(SharedTeam* team, float a, Slice x, float b, Slice y);
void Scale(SharedTeam* team, float a, Slice x);
void Dot(SharedTeam* team, Slice x, Slice y, Slice out);
void SumInOrder(SharedTeam* team, Slice start, const SliceList& parts, Slice out);
void ElasticPull(SharedTeam* team, float alpha, Slice centre, Slice weights, Slice pull);
void CheckAndClip(SharedTeam* team, Gradient gradients, Slice statistics, float clip,
                  const LossScaling& loss, Slice scale);
void Track(SharedTeam* team, float momentum, Slice scale, Slice seen, Slice running);
void Digest(SharedTeam* team, Slice from, const RangeList& ranges, Slice out);

// Cuts an update between blocks of weights, and gradients that are written from others. Nothing is
// called when the scale is to skip it.
struct Stretch {
  float factor;  // of the gradients
  loops::GradientsAt gradients;
  size_t at, size;  // of the weights
};
void ForStretches(SharedTeam* team, Slice scale, const Gradient& gradient,
                  FunctionRef<void(const Stretch&)> work);

template <class Rates>
void Update(SharedTeam* team, const Rates& r, Slice scale, Slice decays, Gradient gradient,
            const Kept<Rates>& kept, Slice weight) {
  ForStretches(team, scale, gradient, [&](const Stretch& s) {
    loops::KeptAt<Rates> own = {};
    for (size_t i = 0; i < own.size() && r.keeps(); ++i) own[i] = kept[i].data + s.at;
    const float* d = decays.size > 0 ? decays.data + s.at / Layout::kAlignment : nullptr;
    loops::Update(r, s.factor, d, s.gradients, own, weight.data + s.at, s.size);
  });
}

template <template <auto> class Lift, class... Rates>
constexpr UpdateRules::Entries LiftedUpdates(UpdateList<Rates...>) {
  return {Lift<Update<Rates>>::Call...};
}

// The table of a device that computes with these functions: Lift<F>::Call says when and where.
//
//   template <auto F> struct AtOnce;
//   template <class... Args, void (*F)(SharedTeam*, Args...)> struct AtOnce<F> {
//     static void Call(Queue& queue, Args... args) { F(nullptr, args...); }
//   };
//   constexpr FlatTable kTable = host::LiftedTable<AtOnce>();
template <template <auto> class Lift>
constexpr FlatTable LiftedTable() {
  return {.put = Lift<Put>::Call,
          .get = Lift<Get>::Call,
          .fill = Lift<Fill>::Call,
          .copy = Lift<Copy>::Call,
          .add = Lift<Add>::Call,
          .blend = Lift<Blend>::Call,
          .scale = Lift<Scale>::Call,
          .dot = Lift<Dot>::Call,
          .sum_in_order = Lift<SumInOrder>::Call,
          .elastic_pull = Lift<ElasticPull>::Call,
          .check_and_clip = Lift<CheckAndClip>::Call,
          .updates = LiftedUpdates<Lift>(UpdateRules()),
          .track = Lift<Track>::Call,
          .digest = Lift<Digest>::Call};
}

}  // namespace trireme::host
