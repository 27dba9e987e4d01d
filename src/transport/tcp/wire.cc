#include "transport/tcp/wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace trireme {
namespace {

[[noreturn]] void Break(int error) {
  const bool hung_up = error == ECONNRESET || error == EPIPE;
  throw WireBroken("{}", hung_up ? "hung up" : std::strerror(error));
}

bool IsNotYet(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

void SetOption(int fd, int option, int value) {  // where it fails, the wire is as good as before
  static_cast<void>(setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value)));
}

}  // namespace

Wire::Wire(int fd) : fd_(fd) {
  fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
  SetOption(fd_, TCP_NODELAY, 1);
}

Wire::~Wire() { close(fd_); }

void Wire::Shut() { shutdown(fd_, SHUT_RDWR); }

void NoticeSilence(int fd, double timeout_s) {
  const int on = timeout_s > 0, seconds = std::clamp(int(timeout_s), 1, 3600);
  static_cast<void>(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)));
  SetOption(fd, TCP_KEEPIDLE, std::max(1, seconds / 2));
  SetOption(fd, TCP_KEEPINTVL, std::max(1, seconds / 6));
  SetOption(fd, TCP_KEEPCNT, 3);
  SetOption(fd, TCP_USER_TIMEOUT, on ? seconds * 1000 : 0);
}

bool Wire::Await(short what, Deadline deadline) {
  for (;;) {
    int wait_ms = -1;
    if (deadline != kNever) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - After(0)).count();
      if (left <= 0) return false;
      wait_ms = int(std::min<int64_t>(left, 1'000'000));
    }
    pollfd entry{.fd = fd_, .events = what, .revents = 0};
    const int ready = poll(&entry, 1, wait_ms);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) Break(errno);
  }
}

void Wire::Read(std::span<std::byte> into, Deadline deadline) {
  const size_t whole = into.size();
  const auto end = [&](const char* why) {
    if (into.size() < whole) throw WireCut("{}", why);
    throw WireBroken("{}", why);
  };
  while (!into.empty()) {
    const ssize_t got = recv(fd_, into.data(), into.size(), 0);
    if (got == 0) end("hung up");
    if (got > 0) {
      into = into.subspan(size_t(got));
    } else if (!IsNotYet(errno)) {
      Break(errno);
    } else if (!Await(POLLIN, deadline)) {
      end("said nothing in time");
    }
  }
}

void Wire::Write(std::span<const std::byte> first, std::span<const std::byte> second,
                 Deadline deadline) {
  while (!first.empty() || !second.empty()) {
    iovec parts[2] = {{const_cast<std::byte*>(first.data()), first.size()},
                      {const_cast<std::byte*>(second.data()), second.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t sent = sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (sent >= 0) {
      const size_t of_first = std::min(size_t(sent), first.size());
      first = first.subspan(of_first);
      second = second.subspan(size_t(sent) - of_first);
    } else if (!IsNotYet(errno)) {
      Break(errno);
    } else if (!Await(POLLOUT, deadline)) {
      throw WireBroken("took nothing in time");
    }
  }
}

bool Wire::AwaitInput(double seconds) { return Await(POLLIN, After(seconds)); }

bool Wire::IsGone() const {
  pollfd entry{.fd = fd_, .events = POLLRDHUP, .revents = 0};
  return poll(&entry, 1, 0) > 0;
}

std::string Wire::LocalHost() const {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  char text[INET6_ADDRSTRLEN] = "";
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length) != 0) Break(errno);
  const auto* const four = reinterpret_cast<const sockaddr_in*>(&address);
  const auto* const six = reinterpret_cast<const sockaddr_in6*>(&address);
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text));
  } else if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
    inet_ntop(AF_INET, &six->sin6_addr.s6_addr[12], text, sizeof(text));
  } else {
    inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text));
  }
  return text;
}

size_t Wire::WriteSome(std::span<const std::byte> bytes, double patience_s) {
  const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) return size_t(sent);
  if (!IsNotYet(errno)) Break(errno);
  Await(POLLOUT, After(patience_s));
  return 0;
}

}  // namespace trireme
