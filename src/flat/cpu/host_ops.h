#pragma once
#include <mutex>

#include "flat/arithmetic.h"

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
void Fold(SharedTeam* team, Slice start, const SliceList& parts, Slice out);
void ElasticPull(SharedTeam* team, float alpha, Slice centre, Slice weights, Slice pull);
void Guard(SharedTeam* team, Gradient gradients, Slice statistics, float clip, Slice verdict);
void Sgd(SharedTeam* team, const SgdRates& r, Slice verdict, Slice decays, Gradient gradient,
         Slice velocity, Slice weight);
void Adam(SharedTeam* team, const AdamRates& r, Slice verdict, Slice decays, Gradient gradient,
          Slice mean, Slice square, Slice weight);
void Adagrad(SharedTeam* team, const AdagradRates& r, Slice verdict, Slice decays,
             Gradient gradient, Slice sum, Slice weight);
void Track(SharedTeam* team, float momentum, Slice verdict, Slice seen, Slice running);

// The table of a device that computes with these functions: Lift<F>::Call says when and where.
//
//   template <auto F> struct Now;
//   template <class... Args, void (*F)(SharedTeam*, Args...)> struct Now<F> {
//     static void Call(Queue& queue, Args... args) { F(nullptr, args...); }
//   };
//   constexpr FlatTable kTable = host::LiftedTable<Now>();
template <template <auto> class Lift>
constexpr FlatTable LiftedTable() {
  return {.put = Lift<Put>::Call,
          .get = Lift<Get>::Call,
          .fill = Lift<Fill>::Call,
          .copy = Lift<Copy>::Call,
          .add = Lift<Add>::Call,
          .blend = Lift<Blend>::Call,
          .fold = Lift<Fold>::Call,
          .elastic_pull = Lift<ElasticPull>::Call,
          .guard = Lift<Guard>::Call,
          .sgd = Lift<Sgd>::Call,
          .adam = Lift<Adam>::Call,
          .adagrad = Lift<Adagrad>::Call,
          .track = Lift<Track>::Call};
}

}  // namespace trireme::host
