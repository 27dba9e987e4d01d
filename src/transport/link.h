#pragma once
#include <memory>

#include "transport/deadline.h"
#include "transport/message.h"
#include "transport/wake_event.h"

namespace trireme {

enum class Arrival {
  kNothing,  // the deadline passed
  kMessage,
  kGone,     // the other end closed, or is cut off for longer than the transport's patience
  kBack,     // an end that was gone is there again, the same one: nothing that was sent is lost
  kRenewed,  // the other end is another incarnation: what was sent to the old one is lost
};

// One end of a connection between a client and a server.
//
// Send:    numbered: arrives exactly once and in order, also through a cut that heals.
// Offer:   latest only: replaces an offer that is still waiting, may be lost in a cut, never
//          builds a queue. Comes after the messages that are waiting.
// Threads: any thread may call Send, Offer and Close; one at a time Receive.
// Failure: an aborted job makes Receive throw PeerLost. Silence is not an error here: whoever waits
//          brings a deadline.
class Link {
 public:
  virtual ~Link() = default;
  virtual void Send(Message message) = 0;
  virtual void Offer(Message message) = 0;
  // What many are sent and nobody changes: a transport that can, sends all the same memory.
  virtual void SendShared(std::shared_ptr<const Message> message) { Send(*message); }
  virtual void OfferShared(std::shared_ptr<const Message> message) { Offer(*message); }
  virtual Arrival Receive(Message& message, Deadline deadline) = 0;
  virtual void Close() noexcept = 0;  // the other end hears kGone after all that was sent

  // Notified when Receive has something; null for none. Not of cuts and healings: look at times.
  virtual void SetWakeEvent(WakeEvent* wake) = 0;
  virtual double timeout_s() const = 0;  // how long to wait for an answer (transport.timeout_s)

  // The other end has been silent for much longer than it was before; 0: it has not, or a transport
  // cannot tell. Seconds of silence otherwise.
  virtual double overdue_s() const { return 0; }
};

}  // namespace trireme
