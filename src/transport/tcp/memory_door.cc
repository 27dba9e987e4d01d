#include "transport/tcp/memory_door.h"

#include "transport/address.h"
#include "transport/open_files.h"
#include "transport/tcp/connection_loop.h"
#include "transport/tcp/listener.h"

namespace trireme {
namespace {

asio::ip::tcp::acceptor ListenAt(asio::io_context& io, const std::string& where) {
  const auto address = ParseAddress(where);
  std::error_code error;
  const auto number = asio::ip::make_address(address ? address->host : "", error);
  if (error || !address || !address->port) {
    throw UsageError("'{}' is not an ADDRESS:PORT to listen on", where);
  }
  try {
    return {io, asio::ip::tcp::endpoint(number, *address->port)};  // with reuse_address
  } catch (const std::system_error& e) {
    throw Error("the memory box cannot listen on {}: {}", where, e.code().message());
  }
}

}  // namespace

class MemoryDoor::Body {
 public:
  Body(MemoryBox& box, const MemoryDoorSetup& setup)
      : refused_(setup.refused),
        wires_(box, setup.refused, setup.bulk),
        listener_(ListenAt(loop_.io(), setup.listen), setup.secret, wires_.incarnation(),
                  Host(box)) {
    address_ = Name(listener_.local());
    listener_.Open();
    loop_.Start();
  }
  ~Body() { loop_.Stop(); }
  const std::string& address() const { return address_; }

 private:
  Listener::Host Host(MemoryBox& box) {
    const auto tell = [this, &box](const std::string& who, const std::string& why) {
      box.store().Refuse();
      if (refused_) refused_(who, why);
    };
    return {.judge =
                [this](const Hello& hello) {
                  if (hello.purpose != Purpose::kMemory) {
                    return std::string("this is a memory box (transport.memory), not a rank");
                  }
                  return wires_.Judge(hello);
                },
            .welcome = [this](Listener::Guest guest) { return Welcome(std::move(guest)); },
            .refused = tell,
            .full = [tell] { tell("a connection", OutOfFiles()); }};
  }
  asio::awaitable<void> Welcome(Listener::Guest guest) {
    wires_.Serve(std::move(guest.socket), guest.hello);
    co_return;
  }

  const MemoryWires::Refused refused_;
  ConnectionLoop loop_;
  MemoryWires wires_;
  Listener listener_;
  std::string address_;
};

MemoryDoor::MemoryDoor(MemoryBox& box, const MemoryDoorSetup& setup)
    : body_(std::make_unique<Body>(box, setup)) {}
MemoryDoor::~MemoryDoor() = default;
std::string MemoryDoor::address() const { return body_->address(); }

}  // namespace trireme
