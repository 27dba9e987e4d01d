#include "transport/tcp/poller.h"

#include <sys/epoll.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "transport/open_files.h"

namespace trireme {
namespace {

int MakeSet() {
  const int fd = epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) throw Error("epoll_create1: {}", ErrnoWords(errno));
  return fd;
}

void Control(int set, int operation, int fd, uint32_t events, Poller::Client& client) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &client;
  if (epoll_ctl(set, operation, fd, &event) != 0) {
    throw Error("epoll_ctl: {}", std::strerror(errno));
  }
}

}  // namespace

Poller::Poller(asio::io_context& io) : set_(io, MakeSet()) { Wait(); }

void Poller::Add(int fd, Client& client) {
  Control(set_.native_handle(), EPOLL_CTL_ADD, fd, EPOLLONESHOT, client);
}

void Poller::Arm(int fd, Client& client, bool in, bool out) {
  const uint32_t events =
      (in ? uint32_t{EPOLLIN} : 0) | (out ? uint32_t{EPOLLOUT} : 0) | EPOLLONESHOT;
  Control(set_.native_handle(), EPOLL_CTL_MOD, fd, events, client);
}

void Poller::Wait() {
  set_.async_wait(asio::posix::stream_descriptor::wait_read, [this](std::error_code error) {
    if (error) return;
    epoll_event events[32];
    const int n = epoll_wait(set_.native_handle(), events, 32, 0);
    for (int i = 0; i < n; ++i) {
      const bool bad = events[i].events & (EPOLLERR | EPOLLHUP);
      static_cast<Client*>(events[i].data.ptr)
          ->OnReady(bad || (events[i].events & EPOLLIN), bad || (events[i].events & EPOLLOUT));
    }
    Wait();
  });
}

}  // namespace trireme
