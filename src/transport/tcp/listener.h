#pragma once
#include <functional>
#include <memory>
#include <string>

#include "transport/tcp/handshake.h"

namespace trireme {

// Where a rank listens. Strangers cost little: few at a time, few seconds each, and no word of
// theirs reaches anybody. Those who say nothing stand in nobody's way: where the listener is full
// the one that has been silent for longest goes. For the loop's thread.
class Listener {
 public:
  struct Guest {
    Socket socket;
    Hello hello;
  };
  struct Host {
    std::function<std::string(const Hello&)> judge;       // words: refused
    std::function<asio::awaitable<void>(Guest)> welcome;  // the rest of the connection's life
    std::function<void(const std::string& who, const std::string& why)> refused = {};
    std::function<void()> full = {};  // this process may open no more files; told once
  };
  Listener(asio::ip::tcp::acceptor acceptor, std::string secret, uint64_t incarnation, Host host);

  void Open();
  asio::ip::tcp::endpoint local() const { return acceptor_.local_endpoint(); }
  const std::string& last_refusal() const { return last_refusal_; }  // "ADDRESS: why", or nothing

 private:
  class Strangers;
  class Place;
  asio::awaitable<void> Accept();
  asio::awaitable<void> Greet(Socket socket, std::shared_ptr<Strangers> strangers);

  asio::ip::tcp::acceptor acceptor_;
  const std::string secret_;
  const uint64_t incarnation_;
  const Host host_;
  const std::shared_ptr<Strangers> strangers_;
  std::string last_refusal_;
};

// Connects to where a rank listens, and is let in; `found`: the other one's incarnation.
// One attempt. Throws Unanswered and Refused; where no file can be opened, asio::system_error.
asio::awaitable<Socket> Dial(asio::ip::tcp::endpoint endpoint, Hello hello,
                             const std::string& secret, uint64_t* found);

}  // namespace trireme
