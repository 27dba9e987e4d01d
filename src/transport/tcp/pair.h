#pragma once
#include <sys/uio.h>

#include <array>
#include <mutex>
#include <span>

#include "transport/tcp/delay_line.h"
#include "transport/tcp/poller.h"
#include "transport/tcp/rate_limiter.h"
#include "transport/tcp/traffic.h"

namespace trireme {

// Who owns the pairs of a rank. All is called under its mutex, on any thread.
class PairOwner {
 public:
  virtual void OnLoss(int rank, std::string_view reason) = 0;
  virtual void OnCall(int peer) = 0;
  virtual void OnOver(int peer) = 0;
  virtual bool finished() const = 0;    // some rank is lost
  virtual void OnUnwatched() = 0;       // Watch() must be called soon
  virtual int finished_fd() const = 0;  // readable from then on

 protected:
  ~PairOwner() = default;
};

// The connection that carries a group's traffic between this rank and one peer. Everything is
// guarded by the owner's mutex, which no system call holds. Reading and writing are two turns that
// one thread each has at a time: a thread that waits for a message reads it itself, one that sends
// something short writes it itself, the rest is the loop's.
class Pair final : Poller::Client {
 public:
  Pair(PairOwner& owner, std::mutex& mutex, PairTraffic& traffic, int peer, Socket socket,
       Poller& poller, RateLimiter& in, RateLimiter& out);
  ~Pair();
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  void Start();
  // Reads on this thread until the transfer is over, the group is finished or the deadline passes.
  // False: another thread reads at the moment.
  bool ReadFor(std::unique_lock<std::mutex>& lock, const TcpTransfer& transfer, Deadline deadline);
  // Writes what can be written at once, and gives the mutex away for a while.
  void Flush(std::unique_lock<std::mutex>& lock, bool long_messages);
  // After ReadFor nobody may be listening: whoever waits in another way, and the owner every now
  // and then, see to it that the loop does.
  void Watch();
  void Kick();                                    // the same on the loop's thread, later
  void Beat(std::unique_lock<std::mutex>& lock);  // a sign of life, where nothing else was said
  void SayGoodbye(std::unique_lock<std::mutex>& lock);
  bool over() const { return over_; }  // nothing more comes
  double silent_s() const;
  void Forgive();  // silence: this rank did not listen itself

 private:
  void OnReady(bool in, bool out) override;
  void Arm();
  void Read(std::unique_lock<std::mutex>& lock);
  void LeaveReading();
  void Swallow(std::unique_lock<std::mutex>& lock);
  bool ReadOnce(std::unique_lock<std::mutex>& lock);  // false: there is nothing, or it is over
  ssize_t Receive(std::unique_lock<std::mutex>& lock);
  ssize_t TakeFar(std::span<const iovec> vectors);
  void Digest();
  void Report();  // to the owner, what the peer said
  void JudgeEnd();
  void Write(std::unique_lock<std::mutex>& lock, bool long_messages);
  ssize_t Transmit(std::unique_lock<std::mutex>& lock, PairTraffic::Outgoing& out);
  void Later(asio::steady_timer& timer, Deadline when, void (Pair::*what)());
  void ResumeReading();
  void ResumeWriting();
  void End(std::string_view reason);

  PairOwner& owner_;
  std::mutex& mutex_;  // guards all below
  PairTraffic& traffic_;
  const int peer_;
  asio::any_io_executor loop_;
  const int fd_;
  Poller& poller_;
  RateLimiter &in_, &out_;
  asio::steady_timer read_timer_, write_timer_;  // of a slowed pair
  DelayLine far_;                                // what has come to a pair that is far away
  std::array<std::byte, 32 << 10> staging_;      // what was read beyond the place it goes to
  size_t begin_ = 0, end_ = 0;
  size_t turn_bytes_ = 0;                    // bytes of this turn
  Deadline read_from_{};                     // of a slowed pair: not before
  bool reading_ = false, writing_ = false;   // somebody has the turn
  bool want_in_ = false, want_out_ = false;  // the poller tells
  bool transmitting_ = false;                // the writer is in its system call
  bool mute_ = false;                        // nothing can be written any more
  bool over_ = false, parting_ = false;
  Deadline heard_, spoke_;
};

}  // namespace trireme
