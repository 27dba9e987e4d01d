#include "transport/link_inbox.h"

#include <utility>

#include "base/error.h"

namespace trireme {

void LinkInbox::Put(Message message) {
  messages_.push_back(std::move(message));
  Wake();
}

void LinkInbox::PutOffer(Message message) {
  offer_ = std::move(message);
  Wake();
}

void LinkInbox::Close() {
  closed_ = true;
  Wake();
}

void LinkInbox::Abort(std::string_view why) {
  if (!aborted_) aborted_ = why;
  Wake();
}

void LinkInbox::Drop() {
  messages_.clear();
  DropOffer();
}

void LinkInbox::DropOffer() {
  offer_.reset();
  Wake();
}

void LinkInbox::ThrowIfAborted() const {
  if (aborted_) throw PeerLost(*aborted_);
}

std::optional<Arrival> LinkInbox::Take(Message& message, bool away) {
  if (!messages_.empty()) {
    message = std::move(messages_.front());
    messages_.pop_front();
    return Arrival::kMessage;
  }
  if (offer_) {
    message = *std::exchange(offer_, {});
    return Arrival::kMessage;
  }
  if ((closed_ || away) && !told_gone_) {
    told_gone_ = true;
    return Arrival::kGone;
  }
  return {};
}

void LinkInbox::SetWakeEvent(WakeEvent* wake) {
  wake_ = wake;
  if (wake) wake->Notify();  // something may be here already
}

void LinkInbox::Wake() {
  changed_.notify_all();
  if (wake_) wake_->Notify();
}

}  // namespace trireme
