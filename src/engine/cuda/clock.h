#pragma once
#include <cuda_runtime_api.h>

#include <mutex>

namespace trireme::cuda {

// When events of a card fired, on the clock of base/clock.h. CUDA tells the distance of two events,
// as a float of milliseconds, which is exact only while it is short: the event that others are
// measured from is replaced once a second. Thread-safe.
class EventClock {
 public:
  EventClock() = default;
  ~EventClock();
  EventClock(const EventClock&) = delete;

  void Start(cudaStream_t stream);  // once, before the others; waits for the stream
  // After an event was recorded on this stream: now and then an event of the clock's own follows.
  void Tick(cudaStream_t stream);
  double TimeOf(cudaEvent_t fired);

 private:
  struct Reference {
    cudaEvent_t event = nullptr;
    double at_s = 0;        // when it fired
    double recorded_s = 0;  // when the host enqueued it
  };
  void TakeNext();  // as the reference, if it has fired

  std::mutex mutex_;
  Reference reference_, next_;  // guarded by mutex_
  bool pending_ = false;        // next_ is on its way; guarded by mutex_
};

}  // namespace trireme::cuda
