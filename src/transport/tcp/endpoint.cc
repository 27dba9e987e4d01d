#include "transport/tcp/endpoint.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "transport/tcp/listener.h"

namespace trireme {

Address ParseMeet(const std::string& meet, std::string_view whose) {
  const auto address = ParseAddress(meet);
  if (!address || !address->port || *address->port == 0) {
    throw UsageError("'{}' is not {}'s HOST:PORT", meet, whose);
  }
  return *address;
}

asio::awaitable<std::vector<asio::ip::tcp::endpoint>> Resolve(Address meet) {
  std::error_code error;
  std::vector<asio::ip::tcp::endpoint> endpoints;
  if (const auto number = asio::ip::make_address(meet.host, error); !error) {
    endpoints.emplace_back(number, *meet.port);
    co_return endpoints;
  }
  // On a thread of Asio's: a server of names that does not answer takes its time.
  asio::ip::tcp::resolver resolver(co_await asio::this_coro::executor);
  const std::string port = std::to_string(*meet.port);
  const auto found = co_await resolver.async_resolve(
      meet.host, port, asio::redirect_error(asio::use_awaitable, error));
  for (const auto& entry : found) {
    if (std::find(endpoints.begin(), endpoints.end(), entry.endpoint()) == endpoints.end()) {
      endpoints.push_back(entry.endpoint());
    }
  }
  if (error || endpoints.empty()) {
    throw Unresolved("{} does not resolve: {}", meet.host,
                     error ? error.message() : "it has no address");
  }
  co_return endpoints;
}

asio::awaitable<Socket> DialName(std::string meet, Hello hello, const std::string& secret,
                                 uint64_t* found) {
  const Address address = ParseMeet(meet);
  std::vector<asio::ip::tcp::endpoint> endpoints = co_await Resolve(address);
  if (secret.empty()) {
    std::erase_if(endpoints, [](const auto& each) { return !IsLoopback(each.address()); });
    if (endpoints.empty()) {
      throw UsageError("{} is not on this host, so it needs a secret; set transport.secret_file",
                       meet);
    }
  }
  std::optional<Refused> refused;
  std::string words;
  for (const asio::ip::tcp::endpoint& endpoint : endpoints) {
    std::string why;
    try {
      Socket socket = co_await Dial(endpoint, hello, secret, found);
      co_return socket;
    } catch (const Refused& error) {  // by another program, perhaps, that has this address now
      if (!refused) refused = error;
      why = error.what();
    } catch (const Unanswered& error) {
      why = error.what();
    }
    if (endpoints.size() > 1) why = fmt::format("{}: {}", Name(endpoint), why);
    words += (words.empty() ? "" : "; ") + why;
  }
  if (refused) throw *refused;
  throw Unanswered("{}", words);
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
  endpoint = {address, setup.rank == 0 ? *ParseMeet(setup.meet).port : uint16_t{0}};
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
