#pragma once
#include "transport/tcp/asio.h"

namespace trireme {

// Tells who can read or write, on the loop's thread, once per arming. Arming costs one system call
// and may be done by any thread: so a thread that waits for bytes can take a descriptor away from
// the loop, which a registration with Asio itself does not allow.
class Poller {
 public:
  class Client {
   public:
    virtual void OnReady(bool in, bool out) = 0;

   protected:
    ~Client() = default;
  };
  explicit Poller(asio::io_context& io);

  void Add(int fd, Client& client);  // armed for nothing; until the end of both
  void Arm(int fd, Client& client, bool in, bool out);

 private:
  void Wait();

  asio::posix::stream_descriptor set_;  // an epoll descriptor
};

}  // namespace trireme
