#include "transport/tcp/endpoint.h"

#include "base/error.h"
#include "transport/address.h"
#include "transport/tcp/handshake.h"

namespace trireme {

asio::ip::tcp::endpoint Resolve(asio::io_context& io, const std::string& meet,
                                std::string_view whose) {
  const auto address = ParseAddress(meet);
  if (!address || !address->port || *address->port == 0) {
    throw UsageError("'{}' is not {}'s HOST:PORT", meet, whose);
  }
  std::error_code error;
  const auto found =
      asio::ip::tcp::resolver(io).resolve(address->host, std::to_string(*address->port), error);
  if (error || found.empty()) {
    throw Error("cannot resolve the host of {} in '{}': {}", whose, meet, error.message());
  }
  return found.begin()->endpoint();
}

asio::ip::tcp::acceptor Listen(asio::io_context& io, const TcpSetup& setup) {
  asio::ip::tcp::acceptor acceptor(io);
  asio::ip::tcp::endpoint endpoint;
  std::error_code error;
  if (setup.rank == 0 && setup.listener >= 0) {
    sockaddr_storage address{};
    socklen_t length = sizeof(address);
    getsockname(setup.listener, reinterpret_cast<sockaddr*>(&address), &length);
    acceptor.assign(address.ss_family == AF_INET6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(),
                    setup.listener, error);
    if (error) throw Error("rank 0 of {}: cannot use its socket: {}", setup.size, error.message());
    return acceptor;
  }
  const auto address = asio::ip::make_address(setup.bind, error);
  if (error) throw UsageError("'{}' is not an address to listen on", setup.bind);
  endpoint = {address, setup.rank == 0 ? Resolve(io, setup.meet).port() : uint16_t{0}};
  try {
    acceptor.open(endpoint.protocol());
    acceptor.set_option(asio::ip::tcp::acceptor::reuse_address(true));
    acceptor.bind(endpoint);
    acceptor.listen();
  } catch (const std::system_error& e) {
    throw Error("rank {} of {}: cannot listen on {}: {}", setup.rank, setup.size, Name(endpoint),
                e.code().message());
  }
  return acceptor;
}

}  // namespace trireme
