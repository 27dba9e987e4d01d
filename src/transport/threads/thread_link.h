#pragma once
#include <mutex>
#include <optional>
#include <string_view>

#include "transport/link_inbox.h"

namespace trireme {

// A link between two threads: both of its ends. Messages are moved, never copied. Thread-safe.
class ThreadLink {
 public:
  // An end that is cut off for longer than `patience_s` counts as gone.
  ThreadLink(double timeout_s, double patience_s);

  Link& client() { return ends_[0]; }
  Link& server() { return ends_[1]; }

  void Abort(std::string_view reason) noexcept;  // every Receive throws PeerLost from now on

  // For tests. Messages of the time wait, offers are lost.
  void Cut(double seconds);
  void Renew();  // the server is another incarnation

 private:
  class End : public Link {
   public:
    End(ThreadLink& wire, int side) : wire_(wire), side_(side) {}
    void Send(Message message) override { wire_.Send(side_, std::move(message)); }
    void Offer(Message message) override { wire_.Offer(side_, std::move(message)); }
    Arrival Receive(Message& message, Deadline deadline) override {
      return wire_.Receive(side_, message, deadline);
    }
    void Close() noexcept override { wire_.Close(side_); }
    void SetWakeEvent(WakeEvent* wake) override { wire_.SetWakeEvent(side_, wake); }
    double timeout_s() const override { return wire_.timeout_s_; }

   private:
    ThreadLink& wire_;
    const int side_;
  };
  // What is on its way to one end.
  struct Inbox : LinkInbox {
    bool renewed = false;  // to be told
  };

  void Send(int side, Message message);
  void Offer(int side, Message message);
  Arrival Receive(int side, Message& message, Deadline deadline);
  void Close(int side) noexcept;
  void SetWakeEvent(int side, WakeEvent* wake);
  std::optional<Arrival> Look(Inbox& inbox, Message& message, Deadline now);

  const double timeout_s_, patience_s_;
  End ends_[2];
  std::mutex mutex_;  // guards all below
  Inbox inboxes_[2];
  Deadline cut_from_, cut_until_;
};

}  // namespace trireme
