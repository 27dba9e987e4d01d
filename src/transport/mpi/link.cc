#include "transport/mpi/link.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/assert.h"

namespace trireme {
namespace {

constexpr int kTag = 0;

}  // namespace

MpiLink::MpiLink(MpiGroup& group, const MpiLibrary& library, int peer, double timeout_s,
                 size_t piece_bytes)
    : group_(group),
      library_(library),
      peer_(peer),
      timeout_s_(timeout_s),
      piece_bytes_(piece_bytes) {}

// ---- for users

void MpiLink::Send(Message message) {
  SendShared(std::make_shared<const Message>(std::move(message)));
}

void MpiLink::Offer(Message message) {
  OfferShared(std::make_shared<const Message>(std::move(message)));
}

void MpiLink::SendShared(std::shared_ptr<const Message> message) {
  MpiTurn turn(group_.turns(), MpiTurn::kCaller);
  if (!closed_here_) Post(Frame::kMessage, std::move(message));
}

void MpiLink::OfferShared(std::shared_ptr<const Message> message) {
  MpiTurn turn(group_.turns(), MpiTurn::kCaller);
  if (closed_here_) return;
  if (std::any_of(out_.begin(), out_.end(), [](const Outgoing& out) { return out.offer; })) {
    waiting_offer_ = std::move(message);
  } else {
    Post(Frame::kOffer, std::move(message));
  }
}

void MpiLink::Close() noexcept {
  MpiTurn turn(group_.turns(), MpiTurn::kCaller);
  if (closed_here_) return;
  Post(Frame::kClose, std::make_shared<const Message>());
  closed_here_ = true;
}

Arrival MpiLink::Receive(Message& message, Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    inbox_.ThrowIfAborted();
    if (const auto arrival = inbox_.Take(message)) return *arrival;
    if (After(0) >= deadline) return Arrival::kNothing;
    inbox_.Wait(lock, deadline);
  }
}

void MpiLink::SetWakeEvent(WakeEvent* wake) {
  std::lock_guard lock(mutex_);
  inbox_.SetWakeEvent(wake);
}

// ---- out

// All pieces at once, so that nothing of another message comes between them.
void MpiLink::Post(Frame frame, std::shared_ptr<const Message> message) {
  if (ended_here_ || group_.Loss()) return;
  Outgoing& out = out_.emplace_back();
  out.offer = frame == Frame::kOffer;
  out.head = {int64_t(frame), message->kind, int64_t(message->body.size())};
  out.head.insert(out.head.end(), message->ints.begin(), message->ints.end());
  out.message = std::move(message);
  const auto post = [&](auto send, const void* data, size_t bytes) {
    TriremeMpiHandle request;
    if (!group_.Ok(send(TRIREME_MPI_LINKS, peer_, kTag, data, int(bytes), &request), peer_)) return;
    out.requests.push_back(request);
  };
  post(out.offer ? mpi().send_to_finder : mpi().send, out.head.data(),
       out.head.size() * sizeof(int64_t));
  const auto body = std::as_bytes(std::span(out.message->body));
  for (size_t at = 0; at < body.size(); at += piece_bytes_) {
    post(mpi().send, body.data() + at, std::min(piece_bytes_, body.size() - at));
  }
  MoveOut();  // a short one is often gone at once
}

bool MpiLink::MoveOut() {
  const size_t gone = std::erase_if(out_, [this](Outgoing& out) { return Done(out.requests); });
  if (gone > 0 && waiting_offer_ &&
      std::none_of(out_.begin(), out_.end(), [](const Outgoing& out) { return out.offer; })) {
    Post(Frame::kOffer, std::move(waiting_offer_));
  }
  return gone > 0;
}

void MpiLink::End() {
  waiting_offer_.reset();
  Post(Frame::kEnd, std::make_shared<const Message>());
  closed_here_ = ended_here_ = true;
}

bool MpiLink::ended() const { return ended_here_ && ended_there_ && out_.empty(); }

void MpiLink::Abort(const std::string& why) {
  std::lock_guard lock(mutex_);
  inbox_.Abort(why);
}

// ---- in

bool MpiLink::Move() {
  const bool out = MoveOut();
  return MoveIn() || out;
}

// One message at most: others want their turn.
bool MpiLink::MoveIn() {
  using Stage = Incoming::Stage;
  bool moved = false;
  if (in_.stage == Stage::kNothing) moved |= !ended_there_ && FindHead();
  if (in_.stage == Stage::kHead) moved |= ReadHead();
  if (in_.stage == Stage::kBody) moved |= FindBody();
  return moved;
}

// The bytes of the next piece, which is to be fetched then; -1: none is here.
int MpiLink::Find(TriremeMpiHandle& piece) {
  int found = 0, bytes = 0;
  const int error = mpi().find(TRIREME_MPI_LINKS, peer_, kTag, &found, &bytes, &piece);
  return group_.Ok(error, peer_) && found ? bytes : -1;
}

bool MpiLink::Fetch(TriremeMpiHandle& piece, void* data, int bytes) {
  TriremeMpiHandle request;
  if (!group_.Ok(mpi().receive(&piece, data, bytes, &request), peer_)) return false;
  in_.requests.push_back(request);
  return true;
}

bool MpiLink::FindHead() {
  TriremeMpiHandle piece;
  const int bytes = Find(piece);
  if (bytes < 0) return false;
  in_.head.resize(size_t(bytes) / sizeof(int64_t));
  TRIREME_ASSERT(in_.head.size() >= kHead);
  if (!Fetch(piece, in_.head.data(), bytes)) return false;
  in_.stage = Incoming::Stage::kHead;
  return true;
}

bool MpiLink::ReadHead() {
  if (!Done(in_.requests)) return false;
  in_.message = {.kind = int(in_.head[1]), .ints = {in_.head.begin() + kHead, in_.head.end()}};
  in_.message.body.resize(size_t(in_.head[2]));
  in_.posted = 0;
  in_.stage = Incoming::Stage::kBody;
  return true;
}

bool MpiLink::FindBody() {
  const auto body = std::as_writable_bytes(std::span(in_.message.body));
  bool moved = false;
  while (in_.posted < body.size()) {
    TriremeMpiHandle piece;
    const int bytes = Find(piece);
    TRIREME_ASSERT(bytes <= int64_t(body.size() - in_.posted));
    if (bytes < 0 || !Fetch(piece, body.data() + in_.posted, bytes)) break;
    in_.posted += size_t(bytes);
    moved = true;
  }
  if (!Done(in_.requests) || in_.posted < body.size()) return moved;
  in_.stage = Incoming::Stage::kNothing;
  Take(Frame(in_.head[0]), std::move(in_.message));
  return true;
}

bool MpiLink::Done(std::vector<TriremeMpiHandle>& requests) {
  size_t through = 0;
  for (; through < requests.size(); ++through) {
    int done = 0;
    if (!group_.Ok(mpi().test(&requests[through], &done), peer_)) continue;  // completes it, too
    if (!done) break;
  }
  requests.erase(requests.begin(), requests.begin() + ptrdiff_t(through));
  return requests.empty();
}

void MpiLink::Take(Frame frame, Message message) {
  std::lock_guard lock(mutex_);
  switch (frame) {
    case Frame::kMessage:
      return inbox_.Put(std::move(message));
    case Frame::kOffer:
      return inbox_.PutOffer(std::move(message));
    case Frame::kClose:
      return inbox_.Close();
    case Frame::kEnd:
      ended_there_ = true;
  }
}

}  // namespace trireme
