#include "transport/tcp/traffic.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace trireme {
namespace {

constexpr size_t kMaxStreams = 1 << 16;
constexpr int kMaxUnanswered = 1 << 16;  // announcements, and promises
constexpr uint64_t kMaxMessage = uint64_t{1} << 48;
constexpr size_t kMaxReason = 4000;

// What a short message costs of the credit, so that empty ones are not free.
uint64_t Cost(uint64_t bytes) { return bytes + 256; }

template <class List>
auto FindNumber(List& list, uint64_t number) {
  return std::find_if(list.begin(), list.end(), [&](const auto& x) {
    if constexpr (requires { x->number; }) {
      return x->number == number;
    } else {
      return x.number == number;
    }
  });
}

}  // namespace

PairTraffic::Stream& PairTraffic::StreamOf(Tag tag) { return streams_[tag]; }

void PairTraffic::Post(TcpTransfer& t) {
  Stream& stream = StreamOf(t.tag);
  t.moved = 0;
  t.ready = t.wanted_back = false;
  t.posted = ThisMoment();
  t.progress = t.sends ? &stream.send_progress : &stream.receive_progress;
  t.number = t.sends ? stream.next_send++ : stream.next_receive++;
  t.stage = TcpTransfer::Stage::kWaiting;
  ++waiting_;
  t.sends ? PostSend(stream, t) : PostReceive(stream, t);
}

void PairTraffic::PostSend(Stream& stream, TcpTransfer& t) {
  const auto promise = FindNumber(stream.promises, t.number);
  const bool promised = promise != stream.promises.end();
  const uint64_t wanted = promised ? promise->size : t.size;
  if (promised) {
    stream.promises.erase(promise);
    --promised_;
  }
  const Frame announce = {FrameKind::kAnnounce, t.tag, t.number, t.size};
  if (t.size <= kEagerBytes && Cost(t.size) <= credit_) {
    credit_ -= Cost(t.size);
    Queue({FrameKind::kEager, t.tag, t.number, t.size}, &t);
  } else if (wanted != t.size) {
    Queue(announce);  // so that the other side hears of the difference
    FailLength(t, wanted);
  } else if (promised) {
    pieces_.push_back(&t);
  } else {
    Queue(announce);
    stream.sends.push_back(&t);
  }
}

void PairTraffic::PostReceive(Stream& stream, TcpTransfer& t) {
  const auto found = FindNumber(stream.arrivals, t.number);
  if (found == stream.arrivals.end()) {
    stream.receives.push_back(&t);
    if (t.size > kEagerBytes) TellReady(t);
    return;
  }
  Arrival& arrival = **found;
  if (arrival.size != t.size) FailLength(t, arrival.size);
  const bool failed = t.stage == TcpTransfer::Stage::kFailed;
  if (arrival.announced) {
    --announced_;
    if (failed) {
      Queue({FrameKind::kRefuse, t.tag, t.number, t.size});
    } else {
      stream.receives.push_back(&t);
      TellReady(t);
    }
  } else if (arrival.filled < arrival.size) {
    if (failed) return;  // nobody takes it
    arrival.taker = &t;
    return;
  } else {
    Owe(arrival.size);
    if (!failed) {
      if (t.size > 0) std::memcpy(t.data, arrival.bytes.data(), t.size);
      Complete(t);
    }
  }
  stream.arrivals.erase(found);
}

void PairTraffic::TellReady(TcpTransfer& receive) {
  receive.ready = true;
  Queue({FrameKind::kReady, receive.tag, receive.number, receive.size});
}

void PairTraffic::Cancel(TcpTransfer& t) {
  if (t.stage != TcpTransfer::Stage::kWaiting) return;
  TRIREME_ASSERT(finished_ && !t.busy);
  --waiting_;
  Stream& stream = StreamOf(t.tag);
  std::erase(stream.sends, &t);
  std::erase(stream.receives, &t);
  std::erase(pieces_, &t);
  std::erase_if(control_, [&](const Outgoing& out) { return out.transfer == &t; });
  if (out_ && out_->transfer == &t) {
    out_->transfer = nullptr;  // a frame that has begun is filled up
    out_->data = nullptr;
  }
  if (in_.transfer == &t) {
    in_.transfer = nullptr;
    in_.data = nullptr;
  }
  for (auto& arrival : stream.arrivals) {
    if (arrival->taker == &t) arrival->taker = nullptr;
  }
}

void PairTraffic::Refuse(const Frame& frame) const {
  throw BadFrame("it sent an invalid frame (kind {}, tag {}, number {}, length {}, extra {})",
                 int(frame.kind), frame.tag, frame.number, frame.length, frame.extra);
}

void PairTraffic::Take(const Frame& frame) {
  TRIREME_ASSERT(in_.done());
  in_ = {};
  switch (frame.kind) {
    case FrameKind::kHeartbeat:
      return;
    case FrameKind::kAbort:
      return TakeText(frame);
    case FrameKind::kGoodbye:
      goodbye_ = true;
      return;
    case FrameKind::kCall:
      called_ = true;
      return;
    case FrameKind::kCredit:
      if (frame.length > kCreditBytes - credit_) Refuse(frame);
      credit_ += frame.length;
      return;
    default:
      break;
  }
  if (frame.tag < 0 || frame.tag >= kMaxTag || frame.length > kMaxMessage) Refuse(frame);
  if (!streams_.contains(frame.tag) && streams_.size() >= kMaxStreams) Refuse(frame);
  switch (frame.kind) {
    case FrameKind::kEager:
      return TakeEager(frame);
    case FrameKind::kAnnounce:
      return TakeAnnounce(frame);
    case FrameKind::kReady:
      return TakeReady(frame);
    case FrameKind::kRefuse:
      return TakeRefuse(frame);
    case FrameKind::kData:
      return TakeData(frame);
    default:
      Refuse(frame);
  }
}

// The numbers of a tag come in order, each once.
void PairTraffic::CheckNew(Stream& stream, const Frame& frame) const {
  const bool posted = frame.number < stream.next_receive;
  if (frame.number < stream.next_arrival ||
      (posted && FindNumber(stream.receives, frame.number) == stream.receives.end())) {
    Refuse(frame);
  }
}

void PairTraffic::TakeEager(const Frame& frame) {
  if (frame.length > kEagerBytes || Cost(frame.length) > given_) Refuse(frame);
  given_ -= Cost(frame.length);
  in_.size = frame.length;
  Stream& stream = StreamOf(frame.tag);
  in_.stream = &stream;
  if (finished_) return EndIncoming();
  CheckNew(stream, frame);
  stream.next_arrival = frame.number + 1;
  const auto found = FindNumber(stream.receives, frame.number);
  if (found == stream.receives.end()) {
    auto& arrival = stream.arrivals.emplace_back(std::make_unique<Arrival>());
    arrival->number = frame.number;
    arrival->size = frame.length;
    arrival->bytes.resize(frame.length);
    in_.arrival = arrival.get();
    in_.data = arrival->bytes.data();
  } else {
    TcpTransfer& receive = **found;
    stream.receives.erase(found);
    if (receive.size != frame.length) {
      FailLength(receive, frame.length);
    } else {
      in_.transfer = &receive;
      in_.data = receive.data;
    }
  }
  EndIncoming();
}

void PairTraffic::TakeAnnounce(const Frame& frame) {
  if (finished_) return;
  Stream& stream = StreamOf(frame.tag);
  CheckNew(stream, frame);
  stream.next_arrival = frame.number + 1;
  const auto found = FindNumber(stream.receives, frame.number);
  if (found == stream.receives.end()) {
    if (++announced_ > kMaxUnanswered) Refuse(frame);
    auto& arrival = stream.arrivals.emplace_back(std::make_unique<Arrival>());
    arrival->number = frame.number;
    arrival->size = frame.length;
    arrival->announced = true;
    return;
  }
  TcpTransfer& receive = **found;
  if (receive.size != frame.length) {
    stream.receives.erase(found);
    Queue({FrameKind::kRefuse, frame.tag, frame.number, receive.size});
    FailLength(receive, frame.length);
  } else if (!receive.ready) {
    TellReady(receive);
  }
}

void PairTraffic::TakeReady(const Frame& frame) {
  if (finished_) return;
  Stream& stream = StreamOf(frame.tag);
  if (frame.number >= stream.next_send) {
    if (FindNumber(stream.promises, frame.number) != stream.promises.end() ||
        ++promised_ > kMaxUnanswered) {
      Refuse(frame);
    }
    stream.promises.push_back({frame.number, frame.length});
    return;
  }
  const auto found = FindNumber(stream.sends, frame.number);
  if (found == stream.sends.end()) return;  // it went at once, or failed
  TcpTransfer& send = **found;
  stream.sends.erase(found);
  if (send.size != frame.length) return FailLength(send, frame.length);
  pieces_.push_back(&send);
}

void PairTraffic::TakeRefuse(const Frame& frame) {
  if (finished_) return;
  Stream& stream = StreamOf(frame.tag);
  const auto found = FindNumber(stream.sends, frame.number);
  if (found == stream.sends.end()) {
    if (frame.number >= stream.next_send) Refuse(frame);
    return;  // it knows already
  }
  TcpTransfer& send = **found;
  stream.sends.erase(found);
  FailLength(send, frame.length);
}

void PairTraffic::TakeData(const Frame& frame) {
  if (frame.length > kPieceBytes) Refuse(frame);
  in_.size = frame.length;
  if (finished_) return;
  Stream& stream = StreamOf(frame.tag);
  const auto found = FindNumber(stream.receives, frame.number);
  if (found == stream.receives.end()) Refuse(frame);
  TcpTransfer& receive = **found;
  if (!receive.ready || frame.extra != receive.moved ||
      frame.length > receive.size - receive.moved || (frame.length == 0 && receive.size > 0)) {
    Refuse(frame);
  }
  if (frame.extra == 0) stream.next_arrival = std::max(stream.next_arrival, frame.number + 1);
  in_.piece = true;
  in_.stream = &stream;
  in_.transfer = &receive;
  in_.data = receive.data + receive.moved;
  EndIncoming();
}

void PairTraffic::TakeText(const Frame& frame) {
  if (frame.length > kMaxReason || frame.tag < 0 || frame.tag >= size_) Refuse(frame);
  text_rank_ = frame.tag;
  text_.resize(frame.length);
  in_.size = frame.length;
  in_.data = reinterpret_cast<std::byte*>(text_.data());
  in_.text = true;
  EndIncoming();
}

std::span<std::byte> PairTraffic::room() const {
  return {in_.data ? in_.data + in_.filled : nullptr, in_.size - in_.filled};
}

void PairTraffic::Arrived(size_t bytes) {
  in_.filled += bytes;
  if (in_.arrival) in_.arrival->filled = in_.filled;
  if (in_.stream) in_.stream->receive_progress = ThisMoment();
  EndIncoming();
}

// Once all bytes of a frame are here.
void PairTraffic::EndIncoming() {
  if (!in_.done()) return;
  const Incoming in = std::exchange(in_, {});
  if (in.text) loss_ = {text_rank_, text_};
  if (!in.stream) return;
  if (in.piece) {
    if (!in.transfer) return;
    in.transfer->moved += in.size;
    if (in.transfer->moved < in.transfer->size) return;
    std::erase(in.stream->receives, in.transfer);
    return Complete(*in.transfer);
  }
  TcpTransfer* receive = in.transfer;
  if (in.arrival) {
    receive = in.arrival->taker;
    if (!receive) return;  // it waits
    if (in.size > 0) std::memcpy(receive->data, in.arrival->bytes.data(), in.size);
    std::erase_if(in.stream->arrivals, [&](const auto& a) { return a.get() == in.arrival; });
  }
  Owe(in.size);
  if (receive) Complete(*receive);
}

void PairTraffic::Owe(size_t bytes) {
  owed_ += Cost(bytes);
  if (owed_ < kCreditBytes / 8) return;
  given_ += owed_;
  Queue({FrameKind::kCredit, 0, 0, owed_});
  owed_ = 0;
}

void PairTraffic::Complete(TcpTransfer& t) {
  (t.sends ? volume_.sent : volume_.received) += t.size;
  t.stage = TcpTransfer::Stage::kDone;
  --waiting_;
  t.changed.notify_all();
}

void PairTraffic::FailLength(TcpTransfer& t, uint64_t other_size) {
  const int from = t.sends ? rank_ : peer_, to = t.sends ? peer_ : rank_;
  t.error =
      fmt::format("rank {} of {} expects {} bytes from rank {}, which sends {} (tag {})", to, size_,
                  t.sends ? other_size : t.size, from, t.sends ? t.size : other_size, t.tag);
  t.stage = TcpTransfer::Stage::kFailed;
  --waiting_;
  t.changed.notify_all();
}

void PairTraffic::Queue(const Frame& frame, TcpTransfer* transfer) {
  Outgoing& out = control_.emplace_back();
  out.header = Encode(frame);
  out.transfer = transfer;
  if (!transfer) return;
  out.data = transfer->data;
  out.size = transfer->size;
}

void PairTraffic::Say(FrameKind kind) { Queue({kind}); }

void PairTraffic::Abort(int lost, std::string_view reason) {
  Outgoing& out = control_.emplace_back();
  out.text = reason.substr(0, kMaxReason);
  out.size = out.text.size();
  out.header = Encode({FrameKind::kAbort, lost, 0, out.size});
}

PairTraffic::Outgoing* PairTraffic::Next(bool long_messages) {
  if (out_) return &*out_;
  if (!control_.empty()) {
    out_ = std::move(control_.front());
    control_.erase(control_.begin());
    if (!out_->text.empty()) out_->data = reinterpret_cast<const std::byte*>(out_->text.data());
  } else if (long_messages && !pieces_.empty()) {
    TcpTransfer& send = *pieces_.front();
    pieces_.erase(pieces_.begin());
    out_ = Outgoing{};
    out_->transfer = &send;
    out_->piece = true;
    out_->data = send.data + send.moved;
    out_->size = std::min(kPieceBytes, send.size - send.moved);
    out_->header = Encode({FrameKind::kData, send.tag, send.number, out_->size, send.moved});
  } else {
    return nullptr;
  }
  return &*out_;
}

void PairTraffic::Written(size_t bytes) {
  out_->written += bytes;
  TcpTransfer* const send = out_->transfer;
  if (send) StreamOf(send->tag).send_progress = ThisMoment();
  if (out_->written < kFrameBytes + out_->size) return;
  if (send) {
    if (out_->piece) send->moved += out_->size;
    if (!out_->piece || send->moved == send->size) {
      Complete(*send);
    } else {
      pieces_.push_back(send);
    }
  }
  out_.reset();
}

void Pump(PairTraffic& from, PairTraffic& to) {
  while (const PairTraffic::Outgoing* out = from.Next(true)) {
    to.Take(*Decode(out->header));
    if (to.inside()) {
      const std::span<std::byte> room = to.room();
      if (room.data() && out->data) std::memcpy(room.data(), out->data, room.size());
      to.Arrived(room.size());
    }
    from.Written(kFrameBytes + out->size);
  }
}

}  // namespace trireme
