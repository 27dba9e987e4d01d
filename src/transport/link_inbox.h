#pragma once
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "transport/deadline.h"
#include "transport/link.h"

namespace trireme {

// What one end of a link has been sent and has not received yet, and whoever waits for it. All
// methods are called under the mutex of the link that owns it.
class LinkInbox {
 public:
  // From the other end; whoever waits is woken.
  void Put(Message message);
  void PutOffer(Message message);  // instead of one that was not taken
  void Close();                    // nothing comes after what is here
  void Abort(std::string_view why);
  void Drop();                        // what is here is lost
  void DropOffer();                   // only that
  void Reopen() { closed_ = false; }  // the other end is another one
  bool closed() const { return closed_; }
  bool aborted() const { return aborted_.has_value(); }

  void ThrowIfAborted() const;  // PeerLost
  // Messages in order, then the offer, then once kGone: the other end has closed, or is away for
  // too long.
  std::optional<Arrival> Take(Message& message, bool away = false);
  bool told_gone() const { return told_gone_; }
  void TellGone() { told_gone_ = true; }   // by whoever knows it in another way
  void TakeBack() { told_gone_ = false; }  // it is here again

  void Wait(std::unique_lock<std::mutex>& lock, Deadline until) {
    changed_.wait_until(lock, until);
  }
  void SetWakeEvent(WakeEvent* wake);
  void Wake();

 private:
  std::deque<Message> messages_;
  std::optional<Message> offer_;
  bool closed_ = false, told_gone_ = false;
  std::optional<std::string> aborted_;
  WakeEvent* wake_ = nullptr;
  std::condition_variable changed_;
};

}  // namespace trireme
