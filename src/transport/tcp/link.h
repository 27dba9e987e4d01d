#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "transport/failure_detector.h"
#include "transport/link_inbox.h"
#include "transport/tcp/asio.h"
#include "transport/tcp/delay_line.h"
#include "transport/tcp/frame.h"
#include "transport/tcp/rate_limiter.h"

namespace trireme {

// One end of a link. It outlives its connections: a message is kept until the other end has it, and
// sent again over the next connection if need be.
class TcpLink : public Link {
 public:
  TcpLink(asio::io_context& io, double timeout_s, RateLimiter& in, RateLimiter& out);

  void Send(Message message) override;
  void Offer(Message message) override;
  void SendShared(std::shared_ptr<const Message> message) override;
  void OfferShared(std::shared_ptr<const Message> message) override;
  Arrival Receive(Message& message, Deadline deadline) override;
  void Close() noexcept override;
  void SetWakeEvent(WakeEvent* wake) override;
  double timeout_s() const override { return timeout_s_; }
  double overdue_s() const override;

  void Abort(const std::string& what);  // Receive throws PeerLost from now on; thread-safe
  // Until all that was sent has arrived, or cannot; false: the deadline came first. Thread-safe.
  bool AwaitDelivery(Deadline deadline);
  void GiveUp();  // the other end will not come back; thread-safe

  // Lives on a connection until it breaks. The newest connection counts. On the loop's thread.
  // Words if the other end sent what no end sends; none: it was closed or cut.
  asio::awaitable<std::string> Carry(Socket socket, uint64_t incarnation);
  bool wants_connection() const;  // thread-safe
  bool connected() const;         // thread-safe

 private:
  struct Numbered {
    uint64_t number = 0;
    FrameKind kind = FrameKind::kMessage;
    std::shared_ptr<const Message> message;
  };
  // One connection.
  struct Line {
    Line(Socket s, double latency_s)
        : socket(std::move(s)),
          wake(socket.get_executor()),
          far(latency_s),
          came(socket.get_executor()) {}
    Socket socket;
    LoopEvent wake;
    DelayLine far;       // what has come over a connection to somewhere far away
    LoopEvent came;      // something has
    uint64_t sent = 0;   // the last message that was written
    uint64_t acked = 0;  // the last one that we said has arrived
    bool broken = false;
  };
  // What the writer of a connection does next.
  struct Outgoing {
    FrameBytes header;
    std::shared_ptr<const Message> message;
    uint64_t number = 0;
  };

  asio::awaitable<void> Agree(Line& line, uint64_t incarnation);
  asio::awaitable<void> Read(std::shared_ptr<Line> line);
  asio::awaitable<void> Write(std::shared_ptr<Line> line);
  asio::awaitable<Message> ReadMessage(Line& line, const Frame& frame, Watch& watch);
  asio::awaitable<void> Swallow(std::shared_ptr<Line> line);
  asio::awaitable<size_t> TakeFar(Line& line, std::span<std::byte> into);
  asio::awaitable<void> ReadAll(Line& line, void* data, size_t bytes, Watch& watch);
  asio::awaitable<void> WriteAll(Line& line, const void* data, size_t bytes);
  std::optional<Outgoing> NextOutgoing(Line& line);
  void Renew(uint64_t incarnation);  // under mutex_
  void Forget(uint64_t number);      // all up to it has arrived; under mutex_
  void Beat();                       // the other end was heard
  void TakeNumbered(const Frame& frame, Message message);
  void Push(FrameKind kind, std::shared_ptr<const Message> message);
  std::optional<Arrival> Look(Message& message, Deadline now);
  void Nudge();              // the writer
  Deadline Silence() const;  // when a connection from which nothing comes is given up

  asio::io_context& io_;
  const double timeout_s_;
  RateLimiter &in_, &out_;
  std::shared_ptr<Line> line_;  // the newest; the loop's thread only

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable delivered_;
  uint64_t incarnation_ = 0;  // of the other end; 0: never met
  // outgoing
  std::deque<Numbered> out_messages_;  // not known to have arrived
  uint64_t next_number_ = 1;
  std::shared_ptr<const Message> out_offer_;
  bool closing_ = false, hopeless_ = false;
  // incoming
  LinkInbox inbox_;
  uint64_t received_ = 0;  // the last number
  bool renewed_ = false;
  bool connected_ = false;
  Deadline away_since_;
  FailureDetector failure_detector_;
};

}  // namespace trireme
