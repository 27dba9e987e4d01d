#pragma once
#include <thread>

#include "base/start_thread.h"
#include "transport/tcp/asio.h"

namespace trireme {

// A loop and its thread, which ends before what the loop works on.
class ConnectionLoop {
 public:
  ~ConnectionLoop() { Stop(); }
  asio::io_context& io() { return io_; }
  void Start() {
    thread_ = StartThread("the thread of the connections", [this] { Run(); });
  }
  void Stop() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Run() {
    for (;;) {
      try {
        io_.run();
        return;
      } catch (const std::exception&) {  // of one connection: its link makes another
      }
    }
  }
  asio::io_context io_{1};
  const asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::jthread thread_;
};

}  // namespace trireme
