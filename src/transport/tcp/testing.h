#pragma once
#include <functional>
#include <future>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/function_ref.h"
#include "transport/check/what_of.h"
#include "transport/first_error.h"
#include "transport/tcp/endpoint.h"
#include "transport/tcp/world.h"

namespace trireme {

inline std::span<std::byte> Bytes(std::vector<char>& v) {
  return std::as_writable_bytes(std::span(v));
}

inline asio::ip::tcp::endpoint EndpointOf(const std::string& meet) {  // by number
  const Address address = ParseMeet(meet);
  return {asio::ip::make_address(address.host), *address.port};
}

// Where a world meets, before it has a rank.
inline TcpSetup Meet(int size, double timeout_s) {
  int port = 0;
  TcpSetup setup{.size = size, .join_s = timeout_s, .timeout_s = timeout_s};
  setup.listener = ListenOnLoopback(port);
  setup.meet = "127.0.0.1:" + std::to_string(port);
  return setup;
}

// A rank in a thread of its own: how its life ends.
inline std::future<std::string> Start(TcpSetup setup, int rank,
                                      std::function<void(World&)> fn = {}) {
  setup.rank = rank;
  return std::async(std::launch::async, [setup, fn] {
    return WhatOf([&] {
      const auto world = JoinTcp(setup);
      if (fn) fn(*world);
    });
  });
}

// One rank of a job, from its rendezvous to its end: an error ends the others, and is kept.
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
  TcpSetup setup = Meet(ranks, timeout_s);
  setup.join_s = 60;  // on a busy machine, too
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
