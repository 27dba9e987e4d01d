#pragma once
#include <string>

#include "base/error.h"
#include "base/function_ref.h"

namespace trireme {

// Starts `ranks` processes on this machine by fork, supervises them, and returns when all have
// ended. No thread but the calling one may run then. What is mapped MAP_SHARED before is shared.
struct Forked {
  int ranks = 1;
  int first = 0, world = 0;  // for errors: the rank of the first, and how many there are in all (0:
                             // these are all)
  // In each process: the life of a rank, told its number here. What it returns, 0 ... 255, becomes
  // a part of the result.
  FunctionRef<int(int rank)> run;
  // In this process, as soon as a rank ends in another way than by returning: tells the others.
  FunctionRef<void(int rank, const std::string& why)> lost;
  // In this process, now and then: a signal that every rank should get, once; 0 for none. The ranks
  // are in process groups of their own, so a terminal's signals arrive here only.
  FunctionRef<int()> signal;
  // Given: ranks do not depend on each other, and a rank that ends in another way than by returning
  // ends nobody else unless this says so, in this process. When the first has returned, the others
  // have kGrace_s to do so.
  enum class Fate {
    kEndsAll,
    kStartAgain,
    kStartGroupAgain,  // with those that `group` numbers alike, which are killed before
    kGoOnWithout,
    kGoOnWithoutGroup,  // likewise
  };
  enum class End {
    kKilled,
    kThrew,
    kLostPeer,  // threw, because another one ended
    kOutdated,  // likewise, and it can begin anew with the others
  };
  FunctionRef<Fate(int rank, const std::string& why, End end)> fate = {};
  FunctionRef<int(int rank)> group = {};
};

// Others have begun anew, and what this process holds is of no use to them: whoever supervises it
// starts it again.
class Outdated : public PeerLost {
 public:
  using PeerLost::PeerLost;
};

// A rank was killed.
class Killed : public Error {
 public:
  using Error::Error;
};

// What the first returned. A rank that throws or dies ends the others: `lost` is told, and whoever
// has not ended after kGrace_s is killed. The first error that is not the echo of another one is
// thrown here, with the rank added. If this process dies, so do the ranks.
int RunForked(const Forked& job);

constexpr double kGrace_s = 4;

}  // namespace trireme
