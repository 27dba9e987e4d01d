#include "transport/tcp/listener.h"

#include <list>
#include <utility>

#include "transport/open_files.h"

namespace trireme {
namespace {

constexpr int kStrangers = 128;  // handshakes at a time; more wait in the kernel's queue

}  // namespace

// Those whose handshake is under way. Coroutines that hold a place may outlive the listener.
class Listener::Strangers {
 public:
  bool full() const { return count_ >= kStrangers; }
  // Sends away the one that has said nothing for longest; false: all have spoken.
  bool DropSilent() {
    if (silent_.empty()) return false;
    std::error_code ignored;
    silent_.front()->close(ignored);
    silent_.pop_front();
    return true;
  }

 private:
  friend class Place;
  int count_ = 0;
  std::list<Socket*> silent_;  // oldest first
};

class Listener::Place {
 public:
  Place(std::shared_ptr<Strangers> among, Socket& socket)
      : among_(std::move(among)), socket_(&socket) {
    ++among_->count_;
    among_->silent_.push_back(socket_);
  }
  ~Place() {
    Heard();
    --among_->count_;
  }
  void Heard() { among_->silent_.remove(socket_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  const std::shared_ptr<Strangers> among_;
  Socket* const socket_;
};

Listener::Listener(asio::ip::tcp::acceptor acceptor, std::string secret, uint64_t incarnation,
                   Host host)
    : acceptor_(std::move(acceptor)),
      secret_(std::move(secret)),
      incarnation_(incarnation),
      host_(std::move(host)),
      strangers_(std::make_shared<Strangers>()) {}

void Listener::Open() { asio::co_spawn(acceptor_.get_executor(), Accept(), asio::detached); }

asio::awaitable<void> Listener::Accept() {
  LoopEvent pause(acceptor_.get_executor());
  bool told_full = false;
  for (;;) {
    while (strangers_->full()) {
      const bool dropped = strangers_->DropSilent();
      co_await pause.Wait(After(dropped ? 0 : 0.05));
    }
    std::error_code error;
    Socket socket =
        co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) co_return;
    if (IsOutOfFiles(error) && strangers_->DropSilent()) continue;
    if (IsOutOfFiles(error) && !std::exchange(told_full, true) && host_.full) host_.full();
    if (error) {  // or the stranger has gone again
      co_await pause.Wait(After(0.05));
      continue;
    }
    asio::co_spawn(acceptor_.get_executor(), Greet(std::move(socket), strangers_), asio::detached);
  }
}

asio::awaitable<void> Listener::Greet(Socket socket, std::shared_ptr<Strangers> strangers) {
  std::string who = "?", why;
  Hello hello;
  {
    Place place(std::move(strangers), socket);
    Watch watch(socket, After(kHelloSeconds));
    bool has_spoken = false;
    const auto heard = [&] {
      has_spoken = true;
      place.Heard();
      watch.Extend(After(kHandshakeSeconds));
    };
    try {
      who = Name(socket.remote_endpoint());
      socket.set_option(asio::ip::tcp::no_delay(true));
      hello = co_await Answer(socket, secret_, incarnation_, heard, host_.judge);
    } catch (const std::system_error& error) {
      const double limit = has_spoken ? kHandshakeSeconds : kHelloSeconds;
      const bool dropped = !has_spoken && error.code() == asio::error::operation_aborted;
      why = dropped && !watch.expired() ? "said nothing while others were waiting"
                                        : WhyBroken(error, watch.expired() ? limit : 0);
    } catch (const std::exception& error) {  // Refused
      why = error.what();
    }
  }
  if (!why.empty()) {
    last_refusal_ = fmt::format("{}: {}", who, why);
    if (host_.refused) host_.refused(who, why);
    co_return;
  }
  Guest guest{std::move(socket), hello};
  co_await host_.welcome(std::move(guest));
}

asio::awaitable<Socket> Dial(asio::ip::tcp::endpoint endpoint, Hello hello,
                             const std::string& secret, uint64_t* found) {
  Socket socket(co_await asio::this_coro::executor);
  const Watch watch(socket, After(kHandshakeSeconds));
  try {
    co_await socket.async_connect(endpoint, asio::use_awaitable);
    // Where nobody listens yet, the kernel may connect a socket with itself.
    if (socket.local_endpoint() == socket.remote_endpoint()) {
      throw std::system_error(asio::error::connection_refused);
    }
    socket.set_option(asio::ip::tcp::no_delay(true));
    *found = co_await Introduce(socket, hello, secret);
  } catch (const std::system_error& error) {
    if (IsOutOfFiles(error.code())) throw;
    throw Unanswered(WhyBroken(error, watch.expired() ? kHandshakeSeconds : 0));
  }
  co_return socket;
}

}  // namespace trireme
