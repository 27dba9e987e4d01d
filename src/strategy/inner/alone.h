#pragma once
#include "flat/arithmetic.h"
#include "strategy/inner/inner.h"

namespace trireme {

// A replica that advances by itself. With several summands (--deterministic) it adds them in shard
// order. No thread, no lock.
class InnerAlone : public Inner {
 public:
  explicit InnerAlone(int summands) : summands_(summands) {}
  int Summands() const override { return summands_; }
  bool OnlyUpdates() const override { return summands_ == 1; }

 protected:
  void Reduce(Replica& r) override {
    if (summands_ == 1) return;
    flat::SumInOrder(r.queue, r.summands[0], r.summands.subspan(1), r.summands[0]);
  }

 private:
  const int summands_;
};

}  // namespace trireme
