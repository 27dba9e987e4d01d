#include "transport/tcp/dialled_link.h"

#include <algorithm>

#include "base/error.h"
#include "transport/open_files.h"
#include "transport/tcp/endpoint.h"

namespace trireme {

DialledLink::DialledLink(const ServerWorldSetup& setup, std::string meet, uint64_t incarnation,
                         asio::io_context& io, std::unique_ptr<TcpLink> link)
    : setup_(setup),
      meet_(std::move(meet)),
      incarnation_(incarnation),
      io_(io),
      link_(std::move(link)) {
  ParseMeet(meet_);  // throws
  asio::co_spawn(io_, KeepConnected(), asio::detached);
}

// Tries again, ever more slowly: a server that was killed comes back, perhaps at another address.
asio::awaitable<void> DialledLink::KeepConnected() {
  LoopEvent pause(io_.get_executor());
  const Hello hello{.purpose = Purpose::kJoin,
                    .size = setup_.tcp.size,
                    .from = setup_.tcp.rank,
                    .incarnation = incarnation_};
  for (double wait = 0.02; link_->wants_connection(); wait = std::min(2 * wait, 1.0)) {
    try {
      uint64_t found = 0;
      Socket socket = co_await DialName(meet_, hello, setup_.tcp.secret, &found);
      {
        const Watch watch(socket, After(kHandshakeSeconds));
        co_await WriteText(socket, setup_.fingerprint);
        co_await ReadText(socket, kMostText);
      }
      wait = 0.02;
      co_await link_->Carry(std::move(socket), found);
    } catch (const Refused& error) {
      link_->Abort(fmt::format("the server at {} refused: {}", meet_, error.what()));
    } catch (const UsageError& error) {
      link_->Abort(error.what());
    } catch (const std::system_error& error) {  // cut off, or not there yet
      if (IsOutOfFiles(error.code())) link_->Abort(OutOfFiles());
    } catch (const std::exception&) {
    }
    co_await pause.Wait(After(wait));
  }
}

}  // namespace trireme
