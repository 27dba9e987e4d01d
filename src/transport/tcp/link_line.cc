// A link's connections: what is read from one and written to it, on the loop's thread.
#include <algorithm>

#include "base/error.h"
#include "transport/tcp/link.h"

namespace trireme {
namespace {

constexpr double kBeatSeconds = 1;
constexpr double kSilenceSeconds = 8;  // then the connection is given up, and made again
constexpr uint64_t kMaxInts = 1 << 20, kMaxFloats = uint64_t{1} << 33;

// Memory for more than this is taken only as the bytes come in.
constexpr size_t kTrustedFloats = 16 << 20;

[[noreturn]] void Garbage() { throw Error("it sent invalid data"); }

}  // namespace

asio::awaitable<std::string> TcpLink::Carry(Socket socket, uint64_t incarnation) {
  if (line_) {
    std::error_code ignored;
    line_->socket.close(ignored);
    line_->wake.Notify();
  }
  const auto line = std::make_shared<Line>(std::move(socket), in_.latency_s());
  line_ = line;
  std::string fault;
  try {
    if (line->far.on()) asio::co_spawn(io_, Swallow(line), asio::detached);
    co_await Agree(*line, incarnation);
    asio::co_spawn(io_, Write(line), asio::detached);
    co_await Read(line);
  } catch (const Error& error) {  // what counts is what arrives over the next one
    fault = error.what();
  } catch (const std::exception&) {  // closed or cut
  }
  line->broken = true;
  std::error_code ignored;
  line->socket.close(ignored);
  line->wake.Notify();
  if (line_ != line) co_return fault;  // a newer one has taken over
  line_.reset();
  std::lock_guard lock(mutex_);
  connected_ = false;
  away_since_ = After(0);
  if (inbox_.closed()) {  // it has ended: what it did not take, nobody takes
    hopeless_ = true;
    delivered_.notify_all();
  }
  inbox_.Wake();
  co_return fault;
}

// Both say what has arrived, and go on from there.
asio::awaitable<void> TcpLink::Agree(Line& line, uint64_t incarnation) {
  FrameBytes mine, theirs;
  {
    std::lock_guard lock(mutex_);
    if (incarnation != incarnation_) Renew(incarnation);
    mine = Encode({FrameKind::kResume, 0, received_});
    line.acked = received_;
  }
  Watch watch(line.socket, Silence());
  co_await WriteAll(line, mine.data(), mine.size());
  co_await ReadAll(line, theirs.data(), theirs.size(), watch);
  const std::optional<Frame> frame = Decode(theirs);
  std::lock_guard lock(mutex_);
  const uint64_t arrived =
      (out_messages_.empty() ? next_number_ : out_messages_.front().number) - 1;
  if (!frame || frame->kind != FrameKind::kResume || frame->number >= next_number_ ||
      frame->number < arrived) {
    Garbage();
  }
  Forget(frame->number);
  line.sent = frame->number;
  connected_ = true;
  failure_detector_.Beat(After(0));
  inbox_.Wake();
}

void TcpLink::Renew(uint64_t incarnation) {
  if (incarnation_ != 0) {  // of the old one and for the old one: lost
    out_messages_.clear();
    out_offer_.reset();
    next_number_ = 1;
    renewed_ = true;
    closing_ = false;
    hopeless_ = inbox_.aborted();  // the old one may have said goodbye
    inbox_.Reopen();
    inbox_.Drop();
  }
  received_ = 0;
  incarnation_ = incarnation;
}

void TcpLink::Forget(uint64_t number) {
  while (!out_messages_.empty() && out_messages_.front().number <= number) {
    out_messages_.pop_front();
  }
  if (out_messages_.empty()) delivered_.notify_all();
}

asio::awaitable<void> TcpLink::Read(std::shared_ptr<Line> line) {
  Watch watch(line->socket, Silence());
  for (;;) {
    FrameBytes header;
    co_await ReadAll(*line, header.data(), header.size(), watch);
    if (line_ != line) co_return;  // a newer connection has taken over
    Beat();
    const std::optional<Frame> frame = Decode(header);
    if (!frame) Garbage();
    switch (frame->kind) {
      case FrameKind::kHeartbeat:
        break;
      case FrameKind::kAck: {
        std::lock_guard lock(mutex_);
        if (frame->number > line->sent) Garbage();
        Forget(frame->number);
        break;
      }
      case FrameKind::kMessage:
      case FrameKind::kClose: {
        Message message = co_await ReadMessage(*line, *frame, watch);
        TakeNumbered(*frame, std::move(message));
        line->wake.Notify();  // to say so
        break;
      }
      case FrameKind::kOffer: {
        Message message = co_await ReadMessage(*line, *frame, watch);
        std::lock_guard lock(mutex_);
        inbox_.PutOffer(std::move(message));
        break;
      }
      default:
        Garbage();
    }
  }
}

void TcpLink::Beat() {
  std::lock_guard lock(mutex_);
  failure_detector_.Beat(After(0));
}

void TcpLink::TakeNumbered(const Frame& frame, Message message) {
  std::lock_guard lock(mutex_);
  if (frame.number <= received_) return;  // sent again, and here already
  if (frame.number != received_ + 1 || inbox_.closed()) Garbage();
  received_ = frame.number;
  if (frame.kind == FrameKind::kClose) {
    inbox_.Close();
  } else {
    inbox_.Put(std::move(message));
  }
}

asio::awaitable<Message> TcpLink::ReadMessage(Line& line, const Frame& frame, Watch& watch) {
  if (frame.length > kMaxInts || frame.extra > kMaxFloats) {
    throw Error(
        "it announced a message of {} integers and {} values; at most {} and {} are allowed",
        frame.length, frame.extra, kMaxInts, kMaxFloats);
  }
  Message message;
  message.kind = frame.tag;
  message.ints.resize(frame.length);
  co_await ReadAll(line, message.ints.data(), frame.length * sizeof(int64_t), watch);
  for (size_t here = 0; here < frame.extra;) {
    const size_t step = std::min<size_t>(frame.extra - here, std::max(here, kTrustedFloats));
    message.body.resize(here + step);
    co_await ReadAll(line, message.body.data() + here, step * sizeof(float), watch);
    here += step;
  }
  co_return message;
}

asio::awaitable<void> TcpLink::ReadAll(Line& line, void* data, size_t bytes, Watch& watch) {
  LoopEvent pause(io_.get_executor());
  for (size_t done = 0; done < bytes;) {
    std::byte* const to = static_cast<std::byte*>(data) + done;
    const size_t most = std::min(bytes - done, in_.piece());
    size_t n = 0;
    if (line.far.on()) {
      n = co_await TakeFar(line, {to, most});
    } else {
      n = co_await line.socket.async_read_some(asio::buffer(to, most), asio::use_awaitable);
    }
    done += n;
    watch.Extend(Silence());
    const Deadline next = in_.Book(n);
    if (next > After(0)) co_await pause.Wait(next);
  }
}

Deadline TcpLink::Silence() const { return After(kSilenceSeconds + in_.latency_s()); }

// Over a connection to somewhere far away: what has come is read when its time is there.
asio::awaitable<void> TcpLink::Swallow(std::shared_ptr<Line> line) {
  LoopEvent pause(io_.get_executor());
  std::vector<std::byte> piece(64 << 10);
  try {
    while (!line->broken) {
      if (line->far.full()) {
        co_await pause.Wait(After(1e-3));
        continue;
      }
      const size_t n =
          co_await line->socket.async_read_some(asio::buffer(piece), asio::use_awaitable);
      line->far.Put(std::span(piece).first(n));
      line->came.Notify();
    }
  } catch (const std::exception&) {  // closed or cut
  }
  line->far.End();
  line->came.Notify();
}

asio::awaitable<size_t> TcpLink::TakeFar(Line& line, std::span<std::byte> into) {
  for (;;) {
    if (const size_t n = line.far.Take(into)) co_return n;
    if (line.far.over() || !line.socket.is_open()) {
      throw std::system_error(asio::error::make_error_code(asio::error::eof));
    }
    co_await line.came.Wait(std::min(line.far.due(), Silence()));
  }
}

// ---- writing

// Messages first, then the offer: it comes after what was waiting.
std::optional<TcpLink::Outgoing> TcpLink::NextOutgoing(Line& line) {
  std::lock_guard lock(mutex_);
  if (line.acked < received_) {
    line.acked = received_;
    return Outgoing{Encode({FrameKind::kAck, 0, received_})};
  }
  Outgoing out;
  Frame frame;
  if (!out_messages_.empty() && out_messages_.back().number > line.sent) {
    const Numbered& next = out_messages_[size_t(line.sent + 1 - out_messages_.front().number)];
    frame.kind = next.kind;
    frame.number = out.number = next.number;
    out.message = next.message;
    line.sent = next.number;
  } else if (out_offer_) {
    frame.kind = FrameKind::kOffer;
    out.message = std::move(out_offer_);
  } else {
    return {};
  }
  frame.tag = out.message->kind;
  frame.length = out.message->ints.size();
  frame.extra = out.message->body.size();
  out.header = Encode(frame);
  return out;
}

asio::awaitable<void> TcpLink::Write(std::shared_ptr<Line> line) {
  try {
    while (!line->broken) {
      std::optional<Outgoing> out = NextOutgoing(*line);
      if (!out) {
        const Deadline beat = After(kBeatSeconds);
        co_await line->wake.Wait(beat);
        if (After(0) < beat || line->broken) continue;
        out = Outgoing{Encode(Frame{FrameKind::kHeartbeat})};
      }
      co_await WriteAll(*line, out->header.data(), out->header.size());
      if (!out->message) continue;
      const Message& message = *out->message;
      co_await WriteAll(*line, message.ints.data(), message.ints.size() * sizeof(int64_t));
      co_await WriteAll(*line, message.body.data(), message.body.size() * sizeof(float));
    }
  } catch (const std::exception&) {
    std::error_code ignored;
    line->socket.close(ignored);  // the reader ends, too
  }
}

asio::awaitable<void> TcpLink::WriteAll(Line& line, const void* data, size_t bytes) {
  LoopEvent pause(io_.get_executor());
  for (size_t done = 0; done < bytes;) {
    const auto rest =
        asio::buffer(static_cast<const char*>(data) + done, std::min(bytes - done, out_.piece()));
    const size_t n = co_await line.socket.async_write_some(rest, asio::use_awaitable);
    done += n;
    const Deadline next = out_.Book(n);
    if (next > After(0)) co_await pause.Wait(next);
  }
}

}  // namespace trireme
