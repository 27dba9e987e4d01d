#pragma once
#include <functional>
#include <memory>
#include <string>

#include "transport/tcp/handshake.h"

namespace trireme {

// Where a rank listens. Strangers cost little: few at a time, few seconds each, and no word of
// theirs reaches anybody. For the loop's thread.
class Door {
 public:
  struct Guest {
    Socket socket;
    Hello hello;
  };
  struct Host {
    std::function<std::string(const Hello&)> judge;       // words: refused
    std::function<asio::awaitable<void>(Guest)> welcome;  // the rest of the connection's life
    std::function<void(const std::string& who, const std::string& why)> refused = {};
  };
  Door(asio::ip::tcp::acceptor acceptor, std::string secret, uint64_t incarnation, Host host);

  void Open();
  asio::ip::tcp::endpoint local() const { return acceptor_.local_endpoint(); }
  const std::string& last_refusal() const { return last_refusal_; }  // "ADDRESS: why", or nothing

 private:
  asio::awaitable<void> Accept();
  asio::awaitable<void> Greet(Socket socket, std::shared_ptr<int> place);

  asio::ip::tcp::acceptor acceptor_;
  const std::string secret_;
  const uint64_t incarnation_;
  const Host host_;
  std::shared_ptr<int> strangers_ = std::make_shared<int>(0);
  std::string last_refusal_;
};

// Connects to where a rank listens, and is let in; `found`: the other one's incarnation.
// One attempt. Throws asio::system_error and Refused.
asio::awaitable<Socket> Dial(asio::ip::tcp::endpoint endpoint, Hello hello,
                             const std::string& secret, uint64_t* found);

}  // namespace trireme
