#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "transport/memory/box.h"
#include "transport/tcp/bulk_host.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/wire.h"

namespace trireme {

// The clients of a box that come by sockets, each served by a thread: whoever listens hands the
// connection over when the handshake is done. A client whose connection breaks may come back within
// the box's timeout_s; then its session ends. Thread-safe.
class MemoryWires {
 public:
  // Told, on another thread, of a client that was sent away, and why.
  using Refused = std::function<void(const std::string& who, const std::string& why)>;
  MemoryWires(MemoryBox& box, Refused refused, BulkOffer bulk = {});
  ~MemoryWires();

  // What a handshake for Purpose::kMemory is refused with, or nothing. Its `incarnation` is the
  // client, `expected` the box's as the client knows it, `from` 1 where it comes back.
  std::string Judge(const Hello& hello);
  void Serve(Socket socket, const Hello& hello);

  uint64_t incarnation() const;  // the box's, for the listener

 private:
  class Connection;
  void Sweep(std::stop_token stop);

  MemoryBox& box_;
  const Refused refused_;
  const BulkOffer bulk_;
  std::vector<std::byte> greeting_;                              // of ends for long values
  std::mutex mutex_;                                             // guards all below
  std::map<uint64_t, std::shared_ptr<Connection>> connections_;  // by client, also those that broke
  std::map<uint64_t, Deadline> away_;  // clients without a connection, and when their time is up
  std::condition_variable_any changed_;
  std::jthread sweeper_;
};

}  // namespace trireme
