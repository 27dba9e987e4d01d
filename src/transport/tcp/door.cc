#include "transport/tcp/door.h"

namespace trireme {
namespace {

constexpr int kStrangers = 128;  // handshakes at a time; more wait in the kernel's queue

// A place among the strangers. The coroutine that holds it may outlive the door.
class Place {
 public:
  explicit Place(std::shared_ptr<int> count) : count_(std::move(count)) { ++*count_; }
  ~Place() { --*count_; }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  std::shared_ptr<int> count_;
};

}  // namespace

Door::Door(asio::ip::tcp::acceptor acceptor, std::string secret, uint64_t incarnation, Host host)
    : acceptor_(std::move(acceptor)),
      secret_(std::move(secret)),
      incarnation_(incarnation),
      host_(std::move(host)) {}

void Door::Open() { asio::co_spawn(acceptor_.get_executor(), Accept(), asio::detached); }

asio::awaitable<void> Door::Accept() {
  Gong pause(acceptor_.get_executor());
  for (;;) {
    while (*strangers_ >= kStrangers) co_await pause.Wait(After(0.05));
    std::error_code error;
    Socket socket =
        co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) co_return;
    if (error) {  // out of descriptors, or the stranger has gone again
      co_await pause.Wait(After(0.05));
      continue;
    }
    asio::co_spawn(acceptor_.get_executor(), Greet(std::move(socket), strangers_), asio::detached);
  }
}

asio::awaitable<void> Door::Greet(Socket socket, std::shared_ptr<int> count) {
  std::string who = "?";
  Hello hello;
  try {
    const Place place(std::move(count));
    const Watch watch(socket, After(kHandshakeSeconds));
    who = Name(socket.remote_endpoint());
    socket.set_option(asio::ip::tcp::no_delay(true));
    hello = co_await Answer(socket, secret_, incarnation_, host_.judge);
  } catch (const std::exception& error) {  // Refused, or the connection broke
    last_refusal_ = fmt::format("{}: {}", who, error.what());
    if (host_.refused) host_.refused(who, error.what());
    co_return;
  }
  Guest guest{std::move(socket), hello};
  co_await host_.welcome(std::move(guest));
}

asio::awaitable<Socket> Dial(asio::ip::tcp::endpoint endpoint, Hello hello,
                             const std::string& secret, uint64_t* found) {
  Socket socket(co_await asio::this_coro::executor);
  {
    const Watch watch(socket, After(kHandshakeSeconds));
    co_await socket.async_connect(endpoint, asio::use_awaitable);
    // Where nobody listens yet, the kernel may connect a socket with itself.
    if (socket.local_endpoint() == socket.remote_endpoint()) {
      throw std::system_error(asio::error::connection_refused);
    }
    socket.set_option(asio::ip::tcp::no_delay(true));
    *found = co_await Introduce(socket, hello, secret);
  }
  co_return socket;
}

}  // namespace trireme
