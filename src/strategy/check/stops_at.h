#pragma once
// For tests: a server whose run ends early.
#include "strategy/server/server.h"

namespace trireme {

// Stops a run once so many positions count; -1: never.
struct StopsAt : ServerKeeper {
  explicit StopsAt(int64_t positions) : limit(positions) {}
  void EpochEnded(const Server&) override {}
  void Look(const Server& server) override {
    stop |= limit >= 0 && server.progress().positions >= limit;
  }
  bool Stop() override { return stop; }

  const int64_t limit;
  bool stop = false;
};

}  // namespace trireme
