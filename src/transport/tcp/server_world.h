#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transport/tcp/world.h"

namespace trireme {

class ShmSegment;

constexpr int kNoRank = -1;  // a client that is none

// Ranks that need no group: clients dial the server (rank 0), each by itself. Any of them may end
// and begin again, in any order, and clients may come that are no ranks. With several servers (the
// first ranks) clients dial all of them, and a server those before it; then all are ranks.
struct ServerWorldSetup {
  // kNoRank: a client that comes by itself. The listener is this server's own.
  TcpSetup tcp;
  std::vector<std::string> more_servers = {};  // HOST:PORT of each server after the first
  std::string fingerprint;                     // of a client: what it would train
  // Where the ranks of this rank's group meet: a listening socket of this machine; -1: it has none.
  int group_listener = -1;
  std::string group_meet;
  ShmSegment* group_memory = nullptr;     // not null: instead, in memory that its ranks share
  std::atomic<int64_t>* steps = nullptr;  // not null: counts what this rank has done
  // Of the server: words against a fingerprint, or none. What a client may know before it makes
  // one.
  std::function<std::string(const std::string& fingerprint)> judge;
  std::string run_info;
  // Of the server, on a thread of its own: somebody was not let in.
  std::function<void(const std::string& who, const std::string& why)> refused;
};

// Does not wait for anybody: links connect when the other end is there. A client that is refused
// hears it from its link (PeerLost with the server's words).
std::unique_ptr<World> JoinServerWorld(const ServerWorldSetup& setup);

// The server's run info. Throws Error where nobody answers, or not to this one.
std::string FetchRunInfo(const std::string& meet, const std::string& secret, double timeout_s);

}  // namespace trireme
