#pragma once
// Asio as this transport uses it: without Boost, and included by few files.
#define ASIO_STANDALONE
#define ASIO_NO_DEPRECATED
// Fences around handlers: one thread runs a loop and posting takes a lock, so they do nothing here,
// and the thread sanitizer does not know them.
#define ASIO_DISABLE_FENCED_BLOCK
// Whether Asio finds aligned_alloc depends on which header came first; two files that differ would
// take and free memory in different ways.
#define ASIO_DISABLE_STD_ALIGNED_ALLOC
#ifdef __clang__  // Asio 1.22 knows only the coroutines that clang had before C++20
#define ASIO_HAS_CO_AWAIT 1
#define ASIO_HAS_STD_COROUTINE 1
#endif
#include <asio/awaitable.hpp>
#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/read.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <exception>
#include <future>
#include <memory>

#include "transport/deadline.h"

namespace trireme {

using Socket = asio::ip::tcp::socket;

// Begins a coroutine on the loop; the future is its exception, or null when it has ended well. The
// loop keeps no part of the exception. (asio::use_future does, and runs threads of its own.)
inline std::future<std::exception_ptr> Begin(asio::io_context& io, asio::awaitable<void> what) {
  auto ended = std::make_shared<std::promise<std::exception_ptr>>();
  std::future<std::exception_ptr> future = ended->get_future();
  const auto run =
      [](asio::awaitable<void> body,
         std::shared_ptr<std::promise<std::exception_ptr>> tell) -> asio::awaitable<void> {
    std::exception_ptr error;
    try {
      co_await std::move(body);
    } catch (...) {
      error = std::current_exception();
    }
    tell->set_value(std::move(error));
  };
  asio::co_spawn(io, run(std::move(what), std::move(ended)), asio::detached);
  return future;
}

// Closes a socket when its time is up, which ends the operations on it. For coroutines of the
// loop's thread.
class Watch {
 public:
  Watch(Socket& socket, Deadline deadline) : state_(std::make_shared<State>(socket, deadline)) {
    Arm(state_);
  }
  ~Watch() {
    state_->socket = nullptr;
    state_->timer.cancel();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void Extend(Deadline deadline) { state_->deadline = deadline; }
  bool expired() const { return state_->expired; }

 private:
  struct State {
    State(Socket& s, Deadline d) : socket(&s), timer(s.get_executor()), deadline(d) {}
    Socket* socket;
    asio::steady_timer timer;
    Deadline deadline;
    bool expired = false;
  };
  static void Arm(std::shared_ptr<State> state) {
    state->timer.expires_at(state->deadline);
    state->timer.async_wait([state](std::error_code error) {
      if (error || !state->socket) return;
      if (std::chrono::steady_clock::now() < state->deadline) return Arm(state);
      state->expired = true;
      std::error_code ignored;
      state->socket->close(ignored);
    });
  }
  std::shared_ptr<State> state_;
};

// What a coroutine waits for and another one gives. For the loop's thread only.
class LoopEvent {
 public:
  explicit LoopEvent(asio::any_io_executor executor) : timer_(std::move(executor)) {}
  void Notify() { timer_.cancel(); }
  asio::awaitable<void> Wait(Deadline deadline) {  // until notified or the deadline
    timer_.expires_at(deadline);
    std::error_code ignored;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }

 private:
  asio::steady_timer timer_;
};

}  // namespace trireme
