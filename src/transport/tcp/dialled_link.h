#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "transport/tcp/link.h"
#include "transport/tcp/server_world.h"

namespace trireme {

constexpr size_t kMostText = 1 << 20;  // of a fingerprint, a run info

// A link whose connection this end makes, to a server, as often as it is lost. The loop runs it.
class DialledLink {
 public:
  DialledLink(const ServerWorldSetup& setup, std::string meet, uint64_t incarnation,
              asio::io_context& io, std::unique_ptr<TcpLink> link);
  TcpLink& link() { return *link_; }

 private:
  asio::awaitable<void> KeepConnected();

  const ServerWorldSetup& setup_;
  const std::string meet_;
  const uint64_t incarnation_;
  asio::io_context& io_;
  const std::unique_ptr<TcpLink> link_;
};

}  // namespace trireme
