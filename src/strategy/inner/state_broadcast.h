#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "flat/staging.h"
#include "strategy/inner/comm_thread.h"
#include "strategy/inner/inner.h"

namespace trireme {

// The server's new state on its way to the workers while they begin to compute with it (the
// overlapped broadcast of S-Caffe, Awan et al. 2017): statistics first, then the buckets in the
// order in which forward reads them, the last one first. On a communication thread, in segments.
// Along the chain each rank receives the state once and passes it on; in the star the server sends
// it to each.
class StateBroadcast {
 public:
  StateBroadcast(Group& group, bool star);
  ~StateBroadcast();

  void Begin(Replica& replica, size_t segment);  // floats that travel at a time
  // From `ready` on the server's state is new, and a worker's may be overwritten. Every rank calls
  // it, after AwaitAll.
  void Start(const Event& ready);
  // Blocks until the bucket has come; the event fires when it is in the state.
  Event Await(const Bucket& bucket);
  // Blocks until all has come, and gone on: the state is this rank's own again.
  Event AwaitAll();
  double busy_s() const { return comm_thread_ ? comm_thread_->busy_s() : 0; }

 private:
  struct Segment {
    Range range;
    int completes = -1;  // a bucket
  };
  CommWork Run(const Event& ready);
  void Publish(int bucket);

  Group& group_;
  const int from_;  // -1: this rank is the server
  const std::vector<int> to_;
  Slice state_;
  std::vector<Segment> segments_;
  std::vector<Ticket> arriving_, leaving_;
  std::unique_ptr<Queue> queue_;
  Staging staging_;             // of the state
  std::mutex mutex_;            // guards the next three
  int complete_ = 0;            // buckets from here on have come
  std::vector<Event> arrived_;  // by bucket
  bool failed_ = false;
  std::condition_variable changed_;
  std::unique_ptr<CommThread<Event>> comm_thread_;  // its thread uses the rest
};

}  // namespace trireme
