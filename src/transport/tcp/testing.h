#pragma once
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/function_ref.h"
#include "transport/first_error.h"
#include "transport/tcp/world.h"

namespace trireme {

// One rank of a job, from its meeting to its end: an error ends the others, and is kept.
inline void RunTcpRank(const TcpSetup& setup, FunctionRef<void(World&)> fn, FirstError& error) {
  try {
    const auto world = JoinTcp(setup);
    try {
      fn(*world);
    } catch (const std::exception& e) {
      error.Keep(setup.rank, std::current_exception());
      world->group().Abort(e.what());
    }
  } catch (const std::exception&) {
    error.Keep(setup.rank, std::current_exception());
  }
}

// Ranks that are threads of this process and talk over loopback. Throws the first error.
inline void RunTcpRanks(int ranks, double timeout_s, FunctionRef<void(World&)> fn) {
  int port = 0;
  TcpSetup setup{.size = ranks, .timeout_s = timeout_s};
  setup.listener = ListenOnLoopback(port);
  setup.meet = "127.0.0.1:" + std::to_string(port);
  FirstError error;
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks; ++r) {
      setup.rank = r;
      threads.emplace_back([setup, fn, &error] { RunTcpRank(setup, fn, error); });
    }
  }
  error.Rethrow(ranks);
}

}  // namespace trireme
