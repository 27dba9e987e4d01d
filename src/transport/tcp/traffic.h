#pragma once
#include <condition_variable>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "transport/deadline.h"
#include "transport/group.h"
#include "transport/tcp/frame.h"

namespace trireme {

class TcpGroup;

// Messages up to this length travel at once, longer ones when their receive is posted.
constexpr size_t kEagerBytes = 64 << 10;
// What one peer may have sent at once and not seen taken: bounds the memory it can fill.
constexpr uint64_t kCreditBytes = 1 << 20;
// Long messages travel in pieces of this length, so that other tags get between them.
constexpr size_t kPieceBytes = 1 << 20;

constexpr Tag kMaxTag = kTags << 16;  // tags of parts included

// One send or receive, the transport's side of a Ticket. Guarded by the group's mutex.
struct TcpTransfer final : Transfer {
  enum class Stage { kWaiting, kDone, kFailed };

  void Wait() override;
  void Finish() noexcept override;

  TcpGroup* group = nullptr;
  bool sends = false;
  int peer = 0;
  Tag tag = 0;
  std::byte* data = nullptr;
  size_t size = 0;
  uint64_t number = 0;       // among those of its tag and direction
  size_t moved = 0;          // of a long message
  bool ready = false;        // of a receive: the sender was told to send
  bool busy = false;         // a system call reads or writes the memory right now
  bool wanted_back = false;  // and its owner waits for the end of it
  Deadline posted;
  const Deadline* progress = nullptr;  // the last of its tag and direction
  Stage stage = Stage::kWaiting;
  std::string error;
  std::condition_variable changed;
};

// A peer sent what no peer of this program sends.
class BadFrame : public Error {
 public:
  using Error::Error;
};

// All that two ranks have posted to each other and not yet moved: which send belongs to which
// receive, which bytes go out next, where the next bytes go that come in. No sockets, no threads;
// guarded by the group's mutex.
//
// A long message needs its receive's kReady. A receive of a long message says so when it is posted,
// without being asked, so in the usual case (receives are posted early) nothing waits. A send that
// finds no kReady announces itself.
class PairTraffic {
 public:
  PairTraffic(int rank, int size, int peer) : rank_(rank), size_(size), peer_(peer) {}

  void Post(TcpTransfer& transfer);
  void Cancel(TcpTransfer& transfer);  // only once the group is finished

  // ---- what comes in
  void Take(const Frame& frame);               // throws BadFrame
  bool inside() const { return !in_.done(); }  // of a frame: its bytes come next
  std::span<std::byte> room() const;           // where they go; no address: nowhere
  TcpTransfer* receiving() const { return in_.transfer; }
  void Arrived(size_t bytes);  // of them

  // ---- what goes out
  struct Outgoing {
    FrameBytes header;
    const std::byte* data = nullptr;  // null: zeros, in place of what was taken back
    size_t size = 0, written = 0;     // written: header included
    TcpTransfer* transfer = nullptr;
    std::string text;  // of an abort
    bool piece = false;
  };
  Outgoing* Next(bool long_messages);  // null: nothing to write
  void Written(size_t bytes);          // of what Next() gave
  bool waits_to_write() const { return out_ || !control_.empty() || !pieces_.empty(); }
  void Say(FrameKind kind);
  void Abort(int lost, std::string_view reason);

  // ---- what the peer said
  struct Loss {
    int rank;
    std::string reason;
  };
  std::optional<Loss> TakeLoss() { return std::exchange(loss_, {}); }
  bool TakeCall() { return std::exchange(called_, false); }
  bool goodbye() const { return goodbye_; }
  bool someone_waits() const { return waiting_ > 0; }  // posted, and needs the peer

  // Nothing is expected and nothing is sent any more but the word of it.
  void Finish() { finished_ = true; }
  const Volume& volume() const { return volume_; }

 private:
  struct Arrival {  // its receive is not posted yet
    uint64_t number = 0, size = 0;
    bool announced = false;  // else the bytes are here
    std::vector<std::byte> bytes;
    size_t filled = 0;
    TcpTransfer* taker = nullptr;  // posted while the bytes were coming in
  };
  struct Promise {  // a kReady that came before its send
    uint64_t number = 0, size = 0;
  };
  struct Stream {  // one tag
    uint64_t next_send = 0, next_receive = 0, next_arrival = 0;
    std::vector<TcpTransfer*> sends, receives;
    std::vector<std::unique_ptr<Arrival>> arrivals;
    std::vector<Promise> promises;
    Deadline send_progress, receive_progress;
  };
  struct Incoming {
    std::byte* data = nullptr;
    size_t size = 0, filled = 0;
    TcpTransfer* transfer = nullptr;
    Arrival* arrival = nullptr;
    Stream* stream = nullptr;  // null: not a message
    bool piece = false, text = false;
    bool done() const { return filled == size; }
  };

  Stream& StreamOf(Tag tag);
  void PostSend(Stream& stream, TcpTransfer& transfer);
  void PostReceive(Stream& stream, TcpTransfer& transfer);
  void TellReady(TcpTransfer& receive);
  void TakeEager(const Frame& frame);
  void TakeAnnounce(const Frame& frame);
  void TakeReady(const Frame& frame);
  void TakeRefuse(const Frame& frame);
  void TakeData(const Frame& frame);
  void TakeText(const Frame& frame);
  void CheckNew(Stream& stream, const Frame& frame) const;
  void EndIncoming();
  void Owe(size_t bytes);  // credit that the peer gets back
  void Complete(TcpTransfer& transfer);
  void FailLength(TcpTransfer& transfer, uint64_t other_size);
  void Queue(const Frame& frame, TcpTransfer* transfer = nullptr);
  [[noreturn]] void Refuse(const Frame& frame) const;

  const int rank_, size_, peer_;
  std::unordered_map<Tag, Stream> streams_;
  std::vector<Outgoing> control_;     // short messages and signs, in order
  std::vector<TcpTransfer*> pieces_;  // long messages that are wanted, in turns
  std::optional<Outgoing> out_;       // being written
  Incoming in_;
  std::string text_;  // of an abort that comes in
  int text_rank_ = 0;
  uint64_t credit_ = kCreditBytes;  // to send
  uint64_t given_ = kCreditBytes;   // to the peer
  uint64_t owed_ = 0;               // taken, and not yet given back
  int announced_ = 0, promised_ = 0, waiting_ = 0;
  Volume volume_;
  std::optional<Loss> loss_;
  bool called_ = false, goodbye_ = false, finished_ = false;
};

// Moves what `from` has to say to `to`, where no socket lies between: a rank's words to itself.
void Pump(PairTraffic& from, PairTraffic& to);

}  // namespace trireme
