#pragma once
#include <cstdint>
#include <set>

namespace trireme {

// Lets workers wait so that no update is applied more than `bound` versions after the weights it
// was computed from, at a free pace. Two rules do it: at most bound + 1 compute at a time, and an
// update is applied only if all others that are on their way can still follow in time, the oldest
// first. The oldest may always be applied, so nobody waits for ever. One thread.
class StaleGate {
 public:
  explicit StaleGate(int64_t bound) : bound_(bound) {}

  bool MayBegin() const { return int64_t(under_way_.size()) <= bound_; }
  void Begin(int64_t version) { under_way_.insert(version); }  // somebody computes from it
  // An update from `version` that is under way, when the centre is at version `now`.
  bool MayApply(int64_t version, int64_t now) const;
  void End(int64_t version);  // it was applied, or will not come

  int64_t under_way() const { return int64_t(under_way_.size()); }

 private:
  const int64_t bound_;
  std::multiset<int64_t> under_way_;
};

}  // namespace trireme
