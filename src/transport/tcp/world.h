#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "transport/world.h"

namespace trireme {

// What a rank needs to know to find the others.
struct TcpSetup {
  int rank = 0, size = 1;
  std::string meet;                // HOST:PORT of rank 0, where everybody reports
  int listener = -1;               // rank 0 only: a bound and listening socket, taken over; else it
                                   // binds the port of `meet`
  std::string bind = "127.0.0.1";  // the address that this rank's port is bound to
  std::string secret;              // of the run; empty: only ranks of the same host are let in
  double join_s = 60;              // all ranks must have come
  double timeout_s = 60;
  double throttle = 0;   // bytes per second and direction of this rank; 0: none
  double latency_s = 0;  // of what comes to this rank, for experiments
  std::vector<std::string> host_of_rank = {};  // where they are expected, for words; may be empty
  std::function<bool()> stop = {};  // asked while it waits for others: true ends it (Interrupted)
  // Told once, maybe on another thread, after a second of waiting: for whom.
  std::function<void(const std::string& words)> say = {};
};

// Somebody wished to stop before all ranks had met.
class Interrupted : public Error {
 public:
  using Error::Error;
};

// Returns when all ranks have met, or throws an Error that names those who are missing.
//
// One thread of the world moves bytes. Every pair of ranks has a connection for the group's
// traffic, and one more for its link, once one of the two asks for it; links connect again by
// themselves. The end of a world waits until what was sent has arrived (a few seconds at most).
// Bytes are neither encrypted nor signed: the secret guards the connection, not the bytes.
std::unique_ptr<World> JoinTcp(const TcpSetup& setup);

// What a process opens besides its connections, about.
constexpr int kOtherFiles = 16;

// For a launcher that forks: a socket that listens on a free port of 127.0.0.1. Closed by exec.
int ListenOnLoopback(int& port);

}  // namespace trireme
