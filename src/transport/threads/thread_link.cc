#include "transport/threads/thread_link.h"

#include <algorithm>
#include <utility>

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
  inboxes_[1 - side].Put(std::move(message));
}

void ThreadLink::Offer(int side, Message message) {
  std::lock_guard lock(mutex_);
  if (std::chrono::steady_clock::now() < cut_until_) return;
  inboxes_[1 - side].PutOffer(std::move(message));
}

Arrival ThreadLink::Receive(int side, Message& message, Deadline deadline) {
  std::unique_lock lock(mutex_);
  Inbox& inbox = inboxes_[side];
  for (;;) {
    inbox.ThrowIfAborted();
    const Deadline now = std::chrono::steady_clock::now();
    if (const auto arrival = Look(inbox, message, now)) return *arrival;
    if (now >= deadline) return Arrival::kNothing;
    Deadline until = deadline;
    if (now < cut_until_) {  // what changes by itself: patience ends, the cut heals
      until = std::min(until, cut_until_);
      if (!inbox.told_gone()) until = std::min(until, Later(cut_from_, patience_s_));
    }
    inbox.Wait(lock, until);
  }
}

std::optional<Arrival> ThreadLink::Look(Inbox& inbox, Message& message, Deadline now) {
  if (std::exchange(inbox.renewed, false)) return Arrival::kRenewed;
  if (now < cut_until_) {
    if (inbox.told_gone() || now < Later(cut_from_, patience_s_)) return {};
    inbox.TellGone();
    return Arrival::kGone;
  }
  if (inbox.told_gone() && !inbox.closed()) {
    inbox.TakeBack();
    return Arrival::kBack;
  }
  return inbox.Take(message);
}

void ThreadLink::Close(int side) noexcept {
  std::lock_guard lock(mutex_);
  inboxes_[1 - side].Close();
}

void ThreadLink::SetWakeEvent(int side, WakeEvent* wake) {
  std::lock_guard lock(mutex_);
  inboxes_[side].SetWakeEvent(wake);
}

void ThreadLink::Abort(std::string_view reason) noexcept {
  std::lock_guard lock(mutex_);
  for (Inbox& inbox : inboxes_) inbox.Abort(reason);
}

void ThreadLink::Cut(double seconds) {
  std::lock_guard lock(mutex_);
  cut_from_ = std::chrono::steady_clock::now();
  cut_until_ = Later(cut_from_, seconds);
  for (Inbox& inbox : inboxes_) inbox.DropOffer();
}

void ThreadLink::Renew() {
  std::lock_guard lock(mutex_);
  inboxes_[1].SetWakeEvent(nullptr);  // the old server's
  inboxes_[0].renewed = true;
  for (Inbox& inbox : inboxes_) inbox.Drop();
}

}  // namespace trireme
