#pragma once
// A mirror on this machine for tests, which can misbehave as others do.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace trireme {

enum class MirrorMood {
  kGood,
  kCuts,     // sends two thirds of what is asked for, then closes
  kNoRange,  // sends all of it, whatever part is asked for
  kStalls,   // sends half of it, then nothing
};

struct MirrorFile {
  std::string content;
  MirrorMood mood = MirrorMood::kGood;
};

// Serves one connection after the other, on a thread of its own. A proxy's requests, which name a
// whole address, are served as well.
class MirrorServer {
 public:
  explicit MirrorServer(std::map<std::string, MirrorFile> files) : files_(std::move(files)) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(listener_, 16) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw Error("no server for the test");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this] { Serve(); });
  }
  ~MirrorServer() {
    ending_ = true;
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    for (const int waiting : waiting_) close(waiting);
    close(listener_);
  }

  std::string address() const { return fmt::format("http://127.0.0.1:{}/", port_); }
  std::vector<std::string> requests() {  // their first lines
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void Serve() {
    while (!ending_) {
      const int connection = accept(listener_, nullptr, nullptr);
      if (connection < 0) continue;
      if (Answer(connection)) close(connection);
    }
  }

  // False: the connection stays as it is.
  bool Answer(int connection) {
    std::string request;
    char buffer[4096];
    while (request.find("\r\n\r\n") == request.npos) {
      const ssize_t got = recv(connection, buffer, sizeof(buffer), 0);
      if (got <= 0) return true;
      request.append(buffer, size_t(got));
    }
    const std::string first = request.substr(0, request.find('\r'));
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(first);
    }
    const std::string path = Split(first, ' ')[1];
    const auto file = files_.find(path.substr(path.rfind('/') + 1));
    if (file == files_.end()) {
      Send(connection, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      return true;
    }
    const auto& [content, mood] = file->second;
    const size_t range = request.find("Range: bytes=");
    size_t begin = 0;
    if (range != request.npos && mood != MirrorMood::kNoRange) {
      begin = size_t(std::atoll(request.c_str() + range + 13));
    }
    const std::string rest = content.substr(std::min(begin, content.size()));
    const std::string part = begin == 0 ? ""
                                        : fmt::format("Content-Range: bytes {}-{}/{}\r\n", begin,
                                                      content.size() - 1, content.size());
    Send(connection, fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n",
                                 begin == 0 ? "200 OK" : "206 Partial Content", rest.size(), part));
    const size_t most = mood == MirrorMood::kCuts && rest.size() > 1000 ? rest.size() / 3 * 2
                        : mood == MirrorMood::kStalls                   ? rest.size() / 2
                                                                        : rest.size();
    Send(connection, rest.substr(0, most));
    if (mood != MirrorMood::kStalls) return true;
    waiting_.push_back(connection);
    return false;
  }

  static void Send(int connection, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(size_t(sent));
    }
  }

  const std::map<std::string, MirrorFile> files_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> ending_ = false;
  std::vector<int> waiting_;  // connections of kStalls
  std::mutex mutex_;
  std::vector<std::string> requests_;  // guarded by mutex_
  std::jthread thread_;
};

}  // namespace trireme
