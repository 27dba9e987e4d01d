#pragma once
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "transport/tcp/pair.h"

namespace trireme {

// The group of all ranks over one connection per pair. Thread-safe, once all peers are attached;
// before, only what says so.
class TcpGroup : public Group, PairOwner {
 public:
  // `called`: a peer wants its link. `over`: nothing more comes from a peer. `lost`: the group is
  // finished; with the words for the user. All are called on any thread, under the group's mutex.
  struct Observer {
    std::function<void(int peer)> called, over;
    std::function<void(const std::string& what)> lost;
  };
  TcpGroup(asio::io_context& io, int rank, int size, double timeout_s, RateLimiter& in,
           RateLimiter& out, Observer observer);
  ~TcpGroup() override;

  void Attach(int peer, Socket socket);  // on the loop's thread
  void Call(int peer);
  void SayGoodbye(Deadline until);  // returns when all have heard all, or at the deadline
  bool lost() const;

  int rank() const override { return rank_; }
  int size() const override { return int(members_.size()); }
  Ticket Send(int to, Tag tag, std::span<const std::byte> bytes) override;
  Ticket Receive(int from, Tag tag, std::span<std::byte> bytes) override;
  void Abort(std::string_view reason) noexcept override;
  Volume volume() const override;
  double silent_s(int peer) const override;

  void Wait(TcpTransfer& transfer);
  void Finish(TcpTransfer& transfer) noexcept;

 private:
  struct Member {
    Member(int rank, int size, int peer) : traffic(rank, size, peer) {}
    PairTraffic traffic;
    std::unique_ptr<Pair> pair;  // none with oneself
  };

  Ticket Post(bool sends, int peer, Tag tag, std::byte* data, size_t size);
  void Push(std::unique_lock<std::mutex>& lock, Member& member);
  TcpTransfer& NewTransfer();
  void Beat();
  bool Slept() const;
  void OnLoss(int rank, std::string_view reason) override;
  void OnCall(int peer) override { observer_.called(peer); }
  void OnOver(int peer) override;
  void OnUnwatched() override;
  void Sweep();
  bool finished() const override { return lost_; }
  int finished_fd() const override { return finished_fd_; }
  void Await(std::unique_lock<std::mutex>& lock, TcpTransfer& transfer);
  Deadline Patience(const TcpTransfer& transfer) const;
  std::string Lost() const;

  asio::io_context& io_;
  const int rank_;
  const double timeout_s_;
  RateLimiter &in_, &out_;
  const Observer observer_;
  asio::steady_timer beat_, sweep_;
  Poller poller_;
  const int finished_fd_;
  mutable std::mutex mutex_;  // guards all below
  std::deque<Member> members_;
  std::deque<TcpTransfer> transfers_;
  std::vector<TcpTransfer*> free_;
  std::condition_variable over_;
  Deadline last_beat_;
  int sweeps_left_ = 0;  // 0: the sweeper sleeps
  bool lost_ = false;
  int lost_rank_ = 0;
  std::string reason_;
};

}  // namespace trireme
