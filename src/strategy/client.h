#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/state_io.h"
#include "flat/queue.h"
#include "strategy/courier.h"
#include "strategy/lease_table.h"
#include "transport/group.h"
#include "transport/link.h"

namespace trireme {

// A worker's side of the link to the server that holds the centre and hands out work. Called on the
// worker's thread. It asks for the next leases while the worker is busy with the last ones.
//
// Leases can become void: the server refused a push (it had given the worker up), or it was
// restarted and knows only its last snapshot. Claim then says kVoid once; what the centre does not
// have is leased again to whoever asks.
class Client {
 public:
  explicit Client(Link& link);
  ~Client();  // says goodbye

  enum class Answer { kLease, kDrain, kEpochEnd, kEnd, kVoid };
  // Blocks until there is an answer. `holds`: there is work of earlier leases that was not pushed.
  Answer Claim(bool holds, Lease& lease);

  struct Centre {
    int64_t version = 0;
    std::vector<float> state;
  };
  void Prefetch();  // asks for the centre that the next Fetch takes
  Centre Fetch(size_t floats);
  // `change.state` shall count at the centre, made from its `change.version`. Sent when `ready`
  // has fired; the worker's thread does not wait for that.
  void Push(const Event& ready, Centre change, std::span<const int64_t> leases);

  void Stop();   // the run shall end early, for all
  void Leave();  // works no more; returns when all that others have begun is in

  const std::vector<float>& Snapshot();  // the centre; leases of the same moment are kept for Save
  void Save(StateWriter& writer) const;

  double waited_s() const { return waited_s_; }
  Volume volume() const { return volume_; }

 private:
  struct Outgoing {
    Event ready;
    Message message;
  };
  void Send(Message message, const Event& ready = Event::Fired());
  // A request that the server answers at once; asked again when the server is another one.
  struct Request {
    const int word;
    bool asked = false;
    std::optional<Message> answer;
  };
  void Ask(Request& request);
  Message Await(Request& request);
  void AskForLeases(bool holds);
  // `done` is asked again after each arrival; `what` is for the message of a deadline.
  void Until(const char* what, FunctionRef<bool()> done);
  bool Take(Deadline deadline);  // one arrival; false: none came
  void Sort(Message message);

  Link& link_;
  bool asked_ = false;             // an ask waits at the server
  std::deque<Lease> granted_;      // not claimed yet
  size_t granted_at_once_ = 0;     // the last time
  std::optional<Message> answer_;  // to an ask, other than leases; comes after those
  double claimed_at_ = 0;          // the lease that is worked on; 0: none
  double step_s_ = 1;              // what the work on a lease takes, on average
  Request centre_, snapshot_;
  bool renewed_ = false;  // the server is another one; for Leave
  bool void_ = false, stopped_ = false, ended_ = false;
  Message image_;
  double waited_s_ = 0;
  Volume volume_;
  std::unique_ptr<Courier<Outgoing>> sender_;  // since the first push that was not ready at once
};

}  // namespace trireme
