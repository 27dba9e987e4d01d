#pragma once
#include <string>

#include "transport/tcp/asio.h"
#include "transport/tcp/world.h"

namespace trireme {

// The address that `meet` names, of whom. Throws Error with words for the user.
asio::ip::tcp::endpoint Resolve(asio::io_context& io, const std::string& meet,
                                std::string_view whose = "rank 0");

asio::ip::tcp::acceptor Listen(asio::io_context& io, const TcpSetup& setup);

}  // namespace trireme
