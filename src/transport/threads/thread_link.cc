#include "transport/threads/thread_link.h"

#include <algorithm>

#include "base/error.h"

namespace trireme {

namespace {
Deadline Later(Deadline from, double seconds) {
  return from +
         std::chrono::duration_cast<Deadline::duration>(std::chrono::duration<double>(seconds));
}
}  // namespace

ThreadLink::ThreadLink(double timeout_s, double patience_s)
    : timeout_s_(timeout_s), patience_s_(patience_s), ends_{{*this, 0}, {*this, 1}} {}

void ThreadLink::Send(int side, Message message) {
  std::lock_guard lock(mutex_);
  Inbox& to = inboxes_[1 - side];
  to.messages.push_back(std::move(message));
  Wake(to);
}

void ThreadLink::Offer(int side, Message message) {
  std::lock_guard lock(mutex_);
  if (std::chrono::steady_clock::now() < cut_until_) return;
  Inbox& to = inboxes_[1 - side];
  to.offer = std::move(message);
  Wake(to);
}

Arrival ThreadLink::Receive(int side, Message& message, Deadline deadline) {
  std::unique_lock lock(mutex_);
  Inbox& inbox = inboxes_[side];
  for (;;) {
    if (aborted_) throw PeerLost(*aborted_);
    const Deadline now = std::chrono::steady_clock::now();
    if (const auto arrival = Look(inbox, message, now)) return *arrival;
    if (now >= deadline) return Arrival::kNothing;
    Deadline until = deadline;
    if (now < cut_until_) {  // what changes by itself: patience ends, the cut heals
      until = std::min(until, cut_until_);
      if (!inbox.told_gone) until = std::min(until, Later(cut_from_, patience_s_));
    }
    changed_.wait_until(lock, until);
  }
}

std::optional<Arrival> ThreadLink::Look(Inbox& inbox, Message& message, Deadline now) {
  if (inbox.renewed) {
    inbox.renewed = false;
    return Arrival::kRenewed;
  }
  if (now < cut_until_) {
    if (inbox.told_gone || now < Later(cut_from_, patience_s_)) return {};
    inbox.told_gone = true;
    return Arrival::kGone;
  }
  if (inbox.told_gone && !inbox.closed) {
    inbox.told_gone = false;
    return Arrival::kBack;
  }
  if (!inbox.messages.empty()) {
    message = std::move(inbox.messages.front());
    inbox.messages.pop_front();
    return Arrival::kMessage;
  }
  if (inbox.offer) {
    message = std::move(*inbox.offer);
    inbox.offer.reset();
    return Arrival::kMessage;
  }
  if (inbox.closed && !inbox.told_gone) {
    inbox.told_gone = true;
    return Arrival::kGone;
  }
  return {};
}

void ThreadLink::Close(int side) noexcept {
  std::lock_guard lock(mutex_);
  inboxes_[1 - side].closed = true;
  Wake(inboxes_[1 - side]);
}

void ThreadLink::SetWakeEvent(int side, WakeEvent* wake) {
  std::lock_guard lock(mutex_);
  inboxes_[side].wake = wake;
  if (wake) wake->Notify();  // something may be here already
}

void ThreadLink::Abort(std::string_view reason) noexcept {
  std::lock_guard lock(mutex_);
  if (!aborted_) aborted_ = reason;
  for (Inbox& inbox : inboxes_) Wake(inbox);
}

void ThreadLink::Cut(double seconds) {
  std::lock_guard lock(mutex_);
  cut_from_ = std::chrono::steady_clock::now();
  cut_until_ = Later(cut_from_, seconds);
  for (Inbox& inbox : inboxes_) inbox.offer.reset();
  changed_.notify_all();
}

void ThreadLink::Renew() {
  std::lock_guard lock(mutex_);
  for (Inbox& inbox : inboxes_) {
    inbox.messages.clear();
    inbox.offer.reset();
  }
  inboxes_[1].wake = nullptr;  // the old server's
  inboxes_[0].renewed = true;
  Wake(inboxes_[0]);
}

void ThreadLink::Wake(Inbox& inbox) {
  changed_.notify_all();
  if (inbox.wake) inbox.wake->Notify();
}

}  // namespace trireme
