#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/log.h"
#include "launch/options.h"
#include "transport/launched.h"
#include "transport/memory.h"
#include "transport/tcp/world.h"
#include "transport/world.h"

namespace trireme {

// The ranks of a job that this process starts, or the one that it is.
struct LocalRanks {
  const TransportOptions& options;  // name and ranks are chosen
  const std::optional<Launched>& launched;
  TcpSetup tcp;  // where ranks find each other, as the first of these sees it. Nowhere (no `meet`):
                 // all are of this machine, and whoever starts them chooses the place
  int count = 1;
};

// What ranks need that advance together.
struct PeerNeeds {
  size_t shared_bytes = 0;         // that a rank will allocate in SharedMemory
  FunctionRef<int()> signal = {};  // see Forked
  const Log* log = nullptr;        // is told of long waits
};

// What ranks of a free pace need: the first is the server.
struct ServerNeeds {
  std::string fingerprint;  // see ServerWorldSetup, and so for the next three
  std::function<std::string(const std::string& fingerprint)> judge;
  std::string run_info;
  std::function<void(const std::string& who, const std::string& why)> refused;
  int servers = 1;  // see ServerRanks, and so for the next two
  std::vector<int> groups = {};
  size_t group_bytes = 0;
  MemoryRoom memory = {};  // not empty: all ranks have so much remote memory in common
  int memory_threads = 1;  // that add to it
  FunctionRef<int()> signal = {};
  const Log* log = nullptr;
  bool announce = false;  // log where the server listens
};

// How ranks talk, and how they come to life. Everybody else asks the row.
struct TransportKind {
  const char* name;
  const char* help;
  bool one_process = false;    // ranks are threads of one process
  bool shares_memory = false;  // all ranks address the same memory, else they send messages
  bool meets = false;          // ranks find each other at an address: transport.meet, .hosts, .bind
  bool emulates_link = false;  // transport.throttle and .latency_ms slow it down
  bool gives_memory = false;   // World::ShareMemory does: nobody keeps a box
  // What carries messages between a server and its clients at a free pace, if not the transport
  // itself; null: it does.
  const char* links = nullptr;

  // Calls `fn` on all local ranks and returns what the first of them returned; throws the first
  // error. Null: ranks of this kind are started by a launcher only.
  int (*run)(const TransportKind& kind, const LocalRanks& ranks, const PeerNeeds& needs,
             FunctionRef<int(World&)> fn) = nullptr;
  // Likewise for ranks of a free pace, which have no group. Null: `run` does.
  int (*run_served)(const LocalRanks& ranks, const ServerNeeds& needs,
                    FunctionRef<int(World&)> fn) = nullptr;
  // Where `run` is null: the words before those of this program that start so many ranks on this
  // machine. Throws where nothing can.
  std::vector<std::string> (*launcher)(int ranks) = nullptr;
  // Makes this process the rank that a launcher says it is. Null: it cannot be one.
  std::unique_ptr<World> (*join)(const LocalRanks& rank) = nullptr;
};

std::span<const TransportKind> TransportKinds();
const TransportKind* FindTransport(std::string_view name);  // null: kAutoTransport, or none

// How ranks talk, for the user: "5 ranks over tcp". `served`: at a free pace, with a server.
std::string TransportText(const TransportOptions& options, bool served);

}  // namespace trireme
