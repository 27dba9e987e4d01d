#pragma once
#include <array>
#include <mutex>

#include "transport/tcp/asio.h"
#include "transport/tcp/pace.h"
#include "transport/tcp/traffic.h"

namespace trireme {

// Who owns the pairs of a rank. All is called under its mutex, on any thread.
class PairOwner {
 public:
  virtual void OnLoss(int rank, std::string_view reason) = 0;
  virtual void OnCall(int peer) = 0;
  virtual void OnOver(int peer) = 0;

 protected:
  ~PairOwner() = default;
};

// The connection that carries a group's traffic between this rank and one peer. Everything is
// guarded by the owner's mutex, which no system call holds. The loop's thread reads. Whoever has
// something short to say writes it at once; the rest is written by the loop's thread.
class Pair {
 public:
  Pair(PairOwner& owner, std::mutex& mutex, Traffic& traffic, int peer, Socket socket, Pace& in,
       Pace& out);

  void Start();                                    // on the loop's thread
  void Flush(std::unique_lock<std::mutex>& lock);  // gives the mutex away for a while
  void Kick();                                     // the same on the loop's thread, later
  void Beat(std::unique_lock<std::mutex>& lock);   // a sign of life, where nothing else was said
  void SayGoodbye(std::unique_lock<std::mutex>& lock);
  bool over() const { return over_; }  // nothing more comes
  double silent_s() const;

 private:
  void WaitReadable();
  void WaitWritable();
  void OnReadable();
  ssize_t Receive(std::unique_lock<std::mutex>& lock);
  void Digest();
  void Report();  // to the owner, what the peer said
  void JudgeEnd();
  void Write(std::unique_lock<std::mutex>& lock, bool long_messages);
  ssize_t Transmit(std::unique_lock<std::mutex>& lock, Traffic::Outgoing& out);
  void Resume(Deadline when);  // writing, on the loop's thread
  void End(std::string_view reason);

  PairOwner& owner_;
  std::mutex& mutex_;  // guards all below
  Traffic& traffic_;
  const int peer_;
  Socket socket_;
  const int fd_;
  Pace &in_, &out_;
  asio::steady_timer read_timer_, write_timer_;
  std::array<std::byte, 32 << 10> staging_;  // what was read beyond the place it goes to
  size_t begin_ = 0, end_ = 0;
  bool writing_ = false;       // somebody has the turn
  bool transmitting_ = false;  // and is in the system call
  bool mute_ = false;          // nothing can be written any more
  bool over_ = false, parting_ = false;
  Deadline heard_, spoke_;
};

}  // namespace trireme
