#pragma once
#include <string>
#include <vector>

#include "transport/address.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/world.h"

namespace trireme {

// HOST:PORT of whom. UsageError where `meet` is none.
Address ParseMeet(const std::string& meet, std::string_view whose = "rank 0");

// The name has no address, or none yet.
class Unresolved : public Unanswered {
 public:
  using Unanswered::Unanswered;
};

// All addresses that `meet` has now: a name may get them late, and others later. Throws Unresolved.
asio::awaitable<std::vector<asio::ip::tcp::endpoint>> Resolve(Address meet);

// Dial (listener.h) at one address of `meet` after the other, until one lets this end in. One
// attempt, which asks for the addresses anew: whoever moves is found by the next. Without a secret
// only addresses of this host are tried; UsageError where there is none.
asio::awaitable<Socket> DialName(std::string meet, Hello hello, const std::string& secret,
                                 uint64_t* found);

asio::ip::tcp::acceptor Listen(asio::io_context& io, const TcpSetup& setup);

}  // namespace trireme
