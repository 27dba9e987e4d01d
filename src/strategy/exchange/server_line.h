#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/function_ref.h"
#include "flat/host_pool.h"
#include "flat/layout.h"
#include "strategy/inner/comm_thread.h"
#include "transport/group.h"
#include "transport/link.h"

namespace trireme {

// A worker's links to the servers of its run: a sending thread beside the worker's, and a receiving
// one for each server. What comes goes to those who listen.
class ServerLine {
 public:
  // A server, and what of the centre it holds. The first hands out work.
  struct Holder {
    Link* link;
    Range partition;
  };
  // Some of what comes is for it. Called with the line locked, on a receiving thread.
  class Listener {
   public:
    virtual bool Hear(size_t server, Message& message) = 0;  // false: it is for another one
    virtual void Renewed(size_t server) = 0;  // another incarnation: it knows of nothing asked
   protected:
    ~Listener() = default;
  };

  // One holder has all, whatever its partition says.
  explicit ServerLine(std::vector<Holder> servers);
  ~ServerLine() { Close(); }

  void Listen(std::vector<Listener*> listeners);  // from now on until Close
  void Close() noexcept;  // says goodbye when all is sent; nobody is told anything afterwards

  std::span<const Holder> servers() const { return servers_; }
  bool several() const { return servers_.size() > 1; }

  std::unique_lock<std::mutex> Lock() const { return std::unique_lock(mutex_); }
  // The rest with the line locked.
  struct Outgoing {
    Message message;
    Event ready = Event::Fired();
    HostBuffer<float> staged = {};  // the body, where a device does not reach messages
    HostPool* pool = nullptr;       // ... which gets its memory back
  };
  void Send(Outgoing out);
  void Notify();  // who waits in Until looks again
  // `done` is asked again after each arrival; `what` is for the message of a deadline. The worker's
  // thread.
  void Until(std::unique_lock<std::mutex>& lock, const char* what, FunctionRef<bool()> done);

  double waited_s() const { return waited_s_; }  // on the worker's thread
  Volume volume() const;                         // locks

 private:
  void Receive(const std::stop_token& stop, size_t server);
  void Sort(size_t server, Message message);
  CommWork Dispatch(Outgoing& out);

  const std::vector<Holder> servers_;
  Link& link_;  // with the first of them
  double waited_s_ = 0;
  std::vector<Listener*> listeners_;  // since Listen

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  int64_t arrivals_ = 0;
  std::exception_ptr error_;
  Volume volume_;

  CommThread<Outgoing> sender_;
  std::vector<std::jthread> receivers_;  // last: join before the rest goes
};

// Throws Error unless the message has so many numbers.
void RequireNumbers(const Message& message, size_t least);

}  // namespace trireme
