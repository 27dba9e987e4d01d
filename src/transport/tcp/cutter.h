#pragma once
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "transport/tcp/endpoint.h"
#include "transport/tcp/world.h"

namespace trireme {

// Passes bytes on between a client and a box, and cuts the connection after so many bytes from
// the client, or with its own end. One connection at a time.
class Cutter {
 public:
  explicit Cutter(std::string to, std::vector<size_t> cuts) : to_(std::move(to)), cuts_(cuts) {
    listener_ = ListenOnLoopback(port_);
    thread_ = std::jthread([this] { Run(); });
  }
  ~Cutter() {
    shutdown(listener_, SHUT_RDWR);
    {
      std::lock_guard lock(mutex_);
      for (const int fd : open_) shutdown(fd, SHUT_RDWR);
    }
    thread_.join();
    close(listener_);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int cut() const { return cut_; }

 private:
  void Run() {
    for (;;) {
      const int from = accept(listener_, nullptr, nullptr);
      if (from < 0) return;
      const size_t most = cuts_.empty() ? ~size_t{0} : cuts_.front();
      if (!cuts_.empty()) cuts_.erase(cuts_.begin());
      Live(from, most);
    }
  }
  void Live(int from, size_t most) {
    const int to = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(uint16_t(std::stoi(to_.substr(to_.rfind(':') + 1))));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(to, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
      {
        std::lock_guard lock(mutex_);
        open_ = {from, to};
      }
      std::jthread back([&] { Pass(to, from, ~size_t{0}); });
      if (Pass(from, to, most)) ++cut_;
      shutdown(from, SHUT_RDWR);
      shutdown(to, SHUT_RDWR);
    }
    std::lock_guard lock(mutex_);
    open_.clear();
    close(from);
    close(to);
  }
  static bool Pass(int from, int to, size_t most) {
    std::vector<char> bytes(65536);
    while (most > 0) {
      const ssize_t got = recv(from, bytes.data(), std::min(bytes.size(), most), 0);
      if (got <= 0) break;
      most -= size_t(got);
      for (ssize_t sent = 0; sent < got;) {
        const ssize_t some = send(to, bytes.data() + sent, size_t(got - sent), MSG_NOSIGNAL);
        if (some <= 0) return false;
        sent += some;
      }
    }
    shutdown(to, SHUT_RDWR);
    return most == 0;
  }

  const std::string to_;
  std::vector<size_t> cuts_;
  int listener_ = -1, port_ = 0;
  std::atomic<int> cut_ = 0;
  std::mutex mutex_;
  std::vector<int> open_;  // guarded by mutex_
  std::jthread thread_;
};

}  // namespace trireme
