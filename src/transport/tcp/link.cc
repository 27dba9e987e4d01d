#include "transport/tcp/link.h"

#include <algorithm>
#include <utility>

namespace trireme {
namespace {

constexpr double kOverdueSeconds = 4;  // at least: a busy machine is no dead one

}  // namespace

TcpLink::TcpLink(asio::io_context& io, double timeout_s, RateLimiter& in, RateLimiter& out)
    : io_(io),
      timeout_s_(timeout_s),
      in_(in),
      out_(out),
      away_since_(After(0)),
      failure_detector_(std::min(kOverdueSeconds, timeout_s), timeout_s) {}

void TcpLink::Push(FrameKind kind, std::shared_ptr<const Message> message) {
  {
    std::lock_guard lock(mutex_);
    if (closing_ || hopeless_) return;
    closing_ = kind == FrameKind::kClose;
    out_messages_.push_back({next_number_++, kind, std::move(message)});
  }
  Nudge();
}

void TcpLink::Send(Message message) {
  SendShared(std::make_shared<const Message>(std::move(message)));
}

void TcpLink::SendShared(std::shared_ptr<const Message> message) {
  Push(FrameKind::kMessage, std::move(message));
}

void TcpLink::Close() noexcept { Push(FrameKind::kClose, std::make_shared<const Message>()); }

void TcpLink::Offer(Message message) {
  OfferShared(std::make_shared<const Message>(std::move(message)));
}

void TcpLink::OfferShared(std::shared_ptr<const Message> message) {
  {
    std::lock_guard lock(mutex_);
    if (closing_ || hopeless_) return;
    out_offer_ = std::move(message);
  }
  Nudge();
}

void TcpLink::Nudge() {
  asio::post(io_, [this] {
    if (line_) line_->wake.Notify();
  });
}

Arrival TcpLink::Receive(Message& message, Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    inbox_.ThrowIfAborted();
    const Deadline now = After(0);
    if (const auto arrival = Look(message, now)) return *arrival;
    if (now >= deadline) return Arrival::kNothing;
    Deadline until = deadline;  // or the end of patience, which comes by itself
    if (!connected_ && !inbox_.told_gone())
      until = std::min(until, away_since_ + (After(timeout_s_) - now));
    inbox_.Wait(lock, until);
  }
}

std::optional<Arrival> TcpLink::Look(Message& message, Deadline now) {
  if (std::exchange(renewed_, false)) {
    inbox_.TakeBack();
    return Arrival::kRenewed;
  }
  if (inbox_.told_gone() && connected_ && !inbox_.closed()) {
    inbox_.TakeBack();
    return Arrival::kBack;
  }
  return inbox_.Take(message, !connected_ && now - away_since_ >= After(timeout_s_) - After(0));
}

void TcpLink::SetWakeEvent(WakeEvent* wake) {
  std::lock_guard lock(mutex_);
  inbox_.SetWakeEvent(wake);
}

void TcpLink::Abort(const std::string& what) {
  std::lock_guard lock(mutex_);
  hopeless_ = true;
  delivered_.notify_all();
  inbox_.Abort(what);
}

void TcpLink::GiveUp() {
  std::lock_guard lock(mutex_);
  hopeless_ = true;
  delivered_.notify_all();
}

bool TcpLink::AwaitDelivery(Deadline deadline) {
  std::unique_lock lock(mutex_);
  return delivered_.wait_until(lock, deadline, [&] { return out_messages_.empty() || hopeless_; });
}

bool TcpLink::wants_connection() const {
  std::lock_guard lock(mutex_);
  return !hopeless_ && !inbox_.aborted() && !(inbox_.closed() && out_messages_.empty());
}

bool TcpLink::connected() const {
  std::lock_guard lock(mutex_);
  return connected_;
}

double TcpLink::overdue_s() const {
  std::lock_guard lock(mutex_);
  return failure_detector_.overdue_s(After(0));
}

}  // namespace trireme
