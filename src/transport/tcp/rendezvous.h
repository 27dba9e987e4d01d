#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transport/tcp/listener.h"
#include "transport/tcp/world.h"

namespace trireme {

// How the ranks of a world find each other. All report to rank 0, which tells each where the others
// listen once all are there; then the higher rank of each pair connects to the lower one. The
// connection of the report is the pair's with rank 0. For the loop's thread.
class Rendezvous {
 public:
  // `attach` gets the connection of each pair.
  Rendezvous(asio::io_context& io, const TcpSetup& setup, uint64_t incarnation,
             std::function<void(int, Socket)> attach);

  std::string Judge(const Hello& hello);  // for the listener: kMeet and kPair
  asio::awaitable<void> Welcome(Listener::Guest guest);
  asio::awaitable<void> Run(const Listener& listener);  // throws what keeps the ranks apart
  void Fail(const std::string& what);                   // Run throws it
  std::string Waiting() const;                          // for whom, in words for the user
  bool done() const { return done_; }
  asio::ip::tcp::endpoint where(int rank) const { return members_[size_t(rank)].endpoint; }
  uint64_t incarnation(int rank) const { return members_[size_t(rank)].incarnation; }

 private:
  struct Member {
    asio::ip::tcp::endpoint endpoint;
    std::string host;
    uint64_t claimed = 0;               // of rank 0: the one that was let in
    asio::ip::address address;          // where it came from
    std::optional<Deadline> contested;  // another one has come: one of the two is gone by then
    uint64_t incarnation = 0;           // 0: has not reported yet
    int visits = 0;                     // connections on which it has reported
    std::optional<Socket> socket;       // of rank 0: until the table is sent
    bool attached = false;
  };

  asio::awaitable<void> Gather(const Listener& listener);
  static void Release(Member& member);
  asio::awaitable<void> AwaitHangUp(int rank);
  asio::awaitable<void> Report(const Listener& listener);
  asio::awaitable<void> ConnectPairs();
  asio::awaitable<Socket> DialUntil(std::string meet, Hello hello, std::string name);
  asio::awaitable<void> TellAll(std::string text, bool refusal);
  std::string Table() const;
  void TakeTable(const std::string& text);
  void Attach(int rank, Socket socket);
  std::vector<int> Absent() const;       // of all that must be attached
  std::string Missing() const;           // "rank 3 is", "ranks 1, 2 are"
  std::string Fault(std::string words);  // keeps the first
  std::string Me() const { return fmt::format("rank {} of {}", setup_.rank, setup_.size); }

  asio::io_context& io_;
  const TcpSetup setup_;
  const uint64_t incarnation_;
  const std::function<void(int, Socket)> attach_;
  const Deadline deadline_;
  std::vector<Member> members_;
  LoopEvent changed_;
  std::string fault_;
  bool reported_ = false;    // not of rank 0: it waits for the table
  bool unresolved_ = false;  // rank 0's name had no address when it was asked for last
  bool done_ = false;
};

}  // namespace trireme
