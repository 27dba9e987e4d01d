#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/observer.h"

namespace trireme {

// Longer means something: where the wire can tell, a rank is heard every second.
constexpr double kUnheard_s = 2;

// What is known of a rank of a job that does not move.
struct Standing {
  Status::Moment moment;
  double since_s = 0;    // it is there
  double silent_s = 0;   // it has not answered; 0: it does
  int unheard = -1;      // the rank that it has not heard for longest, where the wire can tell
  double unheard_s = 0;  // how long that is
};

// Ranks of `all` that keep the others waiting: those that do not answer; else those that are not in
// a call that takes all ranks while others are; else those whose call comes before the others'.
// Empty: all wait in the same call.
std::vector<int> FindMissing(std::span<const Standing> all);

// A sentence for each rank: what it waits for, or what it does.
std::vector<std::string> DescribeStall(std::span<const Standing> all);
// For the error: who never came, and to what.
std::string BlameStall(std::span<const Standing> all, double stall_s);

}  // namespace trireme
