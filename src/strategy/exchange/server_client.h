#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/function_ref.h"
#include "flat/host_pool.h"
#include "flat/layout.h"
#include "strategy/inner/comm_thread.h"
#include "strategy/server/lease_table.h"
#include "strategy/server/protocol.h"
#include "strategy/step/replica.h"
#include "transport/group.h"
#include "transport/link.h"

namespace trireme {

// A worker's side of the link to the server that holds the centre and hands out work: a receiving
// and a sending thread beside the worker's, on which all methods are called. Where the centre lies
// on several servers there is a link, and a receiving thread, for each. It asks for the next
// leases while the worker is busy with the last ones; the newest centre that the server offers
// replaces one that was not taken yet.
//
// Leases can become void: the server refused a push (it had given the worker up), or it was
// restarted and knows only its last snapshot. Claim then says kVoid once; what the centre does not
// have is leased again to whoever asks.
class ServerClient {
 public:
  // A server, and what of the centre it holds. The first hands out work.
  struct Holder {
    Link* link;
    Range partition;
  };
  // Leases that may wait here.
  struct Ahead {
    int most = 64;        // with one push per lease few, or the pushes are stale
    bool always = false;  // as many as the next answer needs: the worker shall never wait for one
  };
  // One holder has all, whatever its partition says.
  ServerClient(std::vector<Holder> servers, Ahead ahead);
  explicit ServerClient(Link& link) : ServerClient({{&link, {}}}, Ahead()) {}
  ~ServerClient();  // says goodbye

  enum class Answer { kLease, kDrain, kEnd, kVoid };
  // Blocks until there is an answer. `holds`: there is work of earlier leases that was not pushed.
  Answer Claim(bool holds, Lease& lease);

  struct Snapshot {
    int64_t version = 0;
    int64_t clients = 1;  // that share it
    std::vector<float> state;
  };
  void Prefetch();  // asks for the centre that the next Fetch takes
  // `computes`: the next push is made from it; where staleness is bounded by waiting, the server
  // answers when one more may compute.
  Snapshot Fetch(size_t floats, bool computes = false);
  Snapshot FetchNow(size_t floats);                   // one that was not asked for before
  std::optional<Snapshot> Prefetched(size_t floats);  // if it has come: does not wait
  // The newest centre that was offered since the last call; nothing: none newer. Of several servers
  // each offers its partition, and there is news when all have.
  std::optional<Snapshot> News(size_t floats);
  // A centre's weights into the device's memory; waits for the queue.
  void Put(Queue& queue, const Snapshot& centre, Slice into);
  // `change` shall count at the centre, made as `head` says: enqueues a copy of it, which is sent
  // when it is there; the worker's thread does not wait for that. `memory`: for the message, if the
  // caller has any to spare.
  void Push(Queue& queue, Slice change, const PushHead& head, std::span<const int64_t> leases,
            std::vector<float> memory = {});
  // The centre that the server answers a push with, in rounds; nothing: the push did not count, and
  // Claim says kVoid next.
  std::optional<Snapshot> Answered(size_t floats);

  bool holds_void() const;  // Claim will say kVoid

  void Stop();  // this worker shall end: Claim says kDrain, then kEnd

  double waited_s() const { return waited_s_; }
  Volume volume() const;

 private:
  struct Outgoing {
    Message message;
    Event ready = Event::Fired();
    HostBuffer<float> staged = {};  // the body, where a device does not reach messages
  };
  void Send(Outgoing out);
  void AskForLeases(bool holds);
  Snapshot TakeReply(size_t floats);
  static Snapshot Unpack(Message message, size_t floats);
  // `done` is asked again after each arrival; `what` is for the message of a deadline.
  void Until(std::unique_lock<std::mutex>& lock, const char* what, FunctionRef<bool()> done);
  void AskForCentre(bool computes = false);
  void Receive(std::stop_token stop, size_t server);
  void Sort(size_t server, Message message);
  void TakePartition(size_t server, int64_t fetch, Message& message);
  void TimeAnswer();
  void Renew(size_t server);
  CommWork Dispatch(Outgoing& out);
  bool several() const { return servers_.size() > 1; }

  const std::vector<Holder> servers_;
  Link& link_;  // with the first of them
  const Ahead ahead_;
  double waited_s_ = 0;
  double claimed_at_ = 0;  // the lease that is worked on; 0: none
  double step_s_;          // what the work on a lease takes, on average; at first a guess
  bool stopped_ = false;
  HostPool staging_;  // of states, between a device and messages

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool asked_ = false;  // an ask waits at the server
  double asked_at_ = 0;
  double answer_s_ = 0;         // how long a grant may take, by the last ones
  std::deque<Lease> granted_;   // not claimed yet
  size_t granted_at_once_ = 0;  // the last time
  bool drain_ = false, ended_ = false, void_ = false;
  bool fetching_ = false;
  int64_t fetches_ = 0;  // the number of the last one
  std::vector<Message>
      partitions_;                // of several servers: what has come of it; kind -1: nothing yet
  std::optional<Message> reply_;  // a centre that was asked for
  std::vector<std::optional<Message>> news_;  // by server
  int64_t arrivals_ = 0;
  std::exception_ptr error_;
  Volume volume_;

  CommThread<Outgoing> sender_;
  std::vector<std::jthread> receivers_;  // last: join before the rest goes
};

// The centre's weights into the replica; their version.
int64_t TakeCentre(ServerClient& client, Replica& replica);

}  // namespace trireme
