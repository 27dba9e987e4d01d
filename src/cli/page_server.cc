#include "cli/page_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

namespace trireme {
namespace {

constexpr size_t kMostRequestBytes = 8192;
constexpr size_t kMostConnections = 16;
constexpr double kConnectionSeconds = 10;

const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Request Header Fields Too Large";
  }
}

// The value of the only header of that name; nothing if there is none or several.
std::string OnlyHeader(const std::vector<std::string>& lines, std::string_view name) {
  std::string value;
  int found = 0;
  for (size_t i = 1; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(':');
    if (colon == std::string::npos || ToLower(lines[i].substr(0, colon)) != name) continue;
    value = Trim(lines[i].substr(colon + 1));
    ++found;
  }
  return found == 1 ? value : "";
}

[[noreturn]] void FailSocket(const char* what, int port) {
  throw Error("127.0.0.1:{}: {}: {} (--port)", port, what, std::generic_category().message(errno));
}

}  // namespace

HttpAnswer AnswerHead(std::string_view head, int port,
                      FunctionRef<HttpAnswer(std::string_view path)> pages) {
  std::vector<std::string> lines = Split(head, '\n');
  for (std::string& line : lines) {
    if (line.ends_with('\r')) line.pop_back();
  }
  const std::vector<std::string> words = Split(lines[0], ' ');
  if (words.size() != 3 || !words[2].starts_with("HTTP/1.") || !words[1].starts_with('/')) {
    return {400, {}, "a request must be: GET / HTTP/1.1\n"};
  }
  if (words[0] != "GET") return {405, {}, "only GET\n"};
  const std::string host = ToLower(OnlyHeader(lines, "host"));
  if (host != fmt::format("127.0.0.1:{}", port) && host != fmt::format("localhost:{}", port)) {
    return {403, {}, "this server only answers requests to its own address\n"};
  }
  return pages(words[1]);
}

std::string HttpText(const HttpAnswer& answer) {
  return fmt::format(
             "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n"
             "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
             "X-Frame-Options: DENY\r\n{}\r\n",
             answer.status, ReasonOf(answer.status),
             answer.type.empty() ? "text/plain; charset=utf-8" : answer.type, answer.body.size(),
             answer.status == 405 ? "Allow: GET\r\n" : "") +
         answer.body;
}

PageServer::PageServer(int port) {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) FailSocket("cannot make a socket", port);
  const int yes = 1;
  ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd_, generic, size) != 0 || ::listen(fd_, 16) != 0 ||
      ::getsockname(fd_, generic, &size) != 0) {
    const int error = errno;
    ::close(fd_);
    errno = error;
    FailSocket("cannot listen", port);
  }
  port_ = ntohs(address.sin_port);
}

PageServer::~PageServer() {
  for (const Connection& connection : connections_) ::close(connection.fd);
  ::close(fd_);
}

void PageServer::Accept() {
  const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  // Whoever waits is still there: without a pause this would be asked again and again.
  if (fd < 0 && (errno == EMFILE || errno == ENFILE)) ::poll(nullptr, 0, /*ms=*/50);
  if (fd < 0) return;
  connections_.push_back({.fd = fd, .until_s = Now() + kConnectionSeconds});
}

void PageServer::Read(Connection& connection,
                      FunctionRef<HttpAnswer(std::string_view path)> pages) {
  char buffer[2048];
  const ssize_t bytes = ::recv(connection.fd, buffer, sizeof(buffer), 0);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (bytes <= 0) {
    connection.done = true;
    return;
  }
  connection.request.append(buffer, size_t(bytes));
  const std::string& request = connection.request;
  size_t end = request.find("\r\n\r\n");
  if (end == request.npos) end = request.find("\n\n");
  if (end != request.npos && end <= kMostRequestBytes) {
    connection.answer =
        HttpText(AnswerHead(std::string_view(request).substr(0, end), port_, pages));
  } else if (request.size() > kMostRequestBytes) {
    connection.answer = HttpText({431, {}, "the request is too long\n"});
  }
}

void PageServer::Write(Connection& connection) {
  const ssize_t bytes = ::send(connection.fd, connection.answer.data() + connection.sent,
                               connection.answer.size() - connection.sent, MSG_NOSIGNAL);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (bytes < 0) connection.done = true;
  if (bytes > 0) connection.sent += size_t(bytes);
  if (connection.sent == connection.answer.size()) {
    ::shutdown(connection.fd, SHUT_WR);
    connection.done = true;
  }
}

void PageServer::Serve(double seconds, FunctionRef<HttpAnswer(std::string_view path)> pages) {
  const double until = Now() + seconds;
  for (double left = seconds; left > 0; left = until - Now()) {
    std::vector<pollfd> polled;
    const bool room = connections_.size() < kMostConnections;
    polled.push_back({room ? fd_ : -1, POLLIN, 0});
    for (const Connection& connection : connections_) {
      polled.push_back({connection.fd, short(connection.answer.empty() ? POLLIN : POLLOUT), 0});
    }
    const int ready = ::poll(polled.data(), polled.size(), int(std::min(left, 1.0) * 1000) + 1);
    if (ready < 0) return;  // a signal: whoever called looks
    size_t i = 1;
    for (Connection& connection : connections_) {
      const bool active = polled[i++].revents != 0;
      if (active && connection.answer.empty()) {
        Read(connection, pages);
      } else if (active) {
        Write(connection);
      }
      if (Now() > connection.until_s) connection.done = true;
      if (connection.done) ::close(connection.fd);
    }
    connections_.remove_if([](const Connection& connection) { return connection.done; });
    if (polled[0].revents & POLLIN) Accept();
  }
}

}  // namespace trireme
