#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "engine/cuda/check.h"
#include "engine/cuda/device.h"
#include "engine/cuda/flat.h"

namespace trireme::cuda {
namespace {

constexpr double kDeadline = 300;  // seconds; a step that takes longer is stuck
constexpr double kAwake = 50e-6;   // seconds of asking without a nap: most waits end here
constexpr double kLongNap = 1e-3;

}  // namespace

// A point in a stream, or a mark if it is timed. It may outlive the queue and, unasked, the device.
class RecordedEvent : public EventState {
 public:
  RecordedEvent(CudaDevice& card, bool timed) : card_(card), index_(card.index()) {
    Check(cudaEventCreateWithFlags(&event_, timed ? cudaEventDefault : cudaEventDisableTiming),
          "cudaEventCreateWithFlags");
  }
  ~RecordedEvent() override { cudaEventDestroy(event_); }

  bool HasFired() override {
    Check(cudaSetDevice(index_), "cudaSetDevice");
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) return false;
    Check(status, "cudaEventQuery");
    return true;
  }

  // cudaEventSynchronize knows no deadline. Naps grow with the time waited, so that a long wait
  // leaves its core to others and ends at most an eighth too late.
  void Wait() override {
    const double start = Now();
    while (!HasFired()) {
      const double waited = Now() - start;
      if (waited > kDeadline) {
        throw Error(
            "cuda:{}: work has not finished for {:.0f} s; nvidia-smi shows who uses the card",
            index_, waited);
      }
      if (waited < kAwake) continue;
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(kLongNap, waited / 8)));
    }
  }

  double FiredAt() override {
    if (fired_at_s_ == 0) {
      Wait();
      fired_at_s_ = card_.clock().TimeOf(event_);
    }
    return fired_at_s_;
  }

  void Record(cudaStream_t stream) {
    fired_at_s_ = 0;
    Check(cudaEventRecord(event_, stream), "cudaEventRecord");
  }
  cudaEvent_t event() const { return event_; }

 private:
  CudaDevice& card_;
  const int index_;
  cudaEvent_t event_ = nullptr;
  std::atomic<double> fired_at_s_ = 0;  // 0: nobody has asked yet
};

std::shared_ptr<RecordedEvent> EventPool::Take() {
  for (size_t tried = 0; tried < events_.size(); ++tried) {
    next_ = (next_ + 1) % events_.size();
    if (events_[next_].use_count() > 1) continue;
    std::atomic_thread_fence(std::memory_order_acquire);  // after whoever let go of it last
    return events_[next_];
  }
  next_ = events_.size();
  events_.push_back(std::make_shared<RecordedEvent>(card_, timed_));
  return events_.back();
}

CudaQueue::CudaQueue(CudaDevice& device, bool yields)
    : Queue(device),
      card_(device),
      sums_(device, kSumBytes, "sums"),
      points_(device, false),
      marks_(device, true) {
  card_.Select();
  int lowest = 0, highest = 0;  // a lower number is a higher priority
  Check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
  Check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                     yields ? lowest : std::max(highest, lowest - 1)),
        "cudaStreamCreateWithPriority");
}

CudaQueue::~CudaQueue() {
  cudaSetDevice(card_.index());
  // An error was or will be told to whoever waits for an event.
  if (cudaStreamSynchronize(stream_) != cudaSuccess) cudaGetLastError();
  cudaStreamDestroy(stream_);
}

Event CudaQueue::Record() { return RecordOne(points_); }

Event CudaQueue::Mark() {
  Event mark = RecordOne(marks_);
  card_.clock().Tick(stream_);
  return mark;
}

Event CudaQueue::RecordOne(EventPool& pool) {
  card_.Select();
  std::shared_ptr<RecordedEvent> event = pool.Take();
  event->Record(stream_);
  return Event(std::move(event));
}

void CudaQueue::Wait(const Event& event) {
  TRIREME_ASSERT(event.recorded());
  if (!event.state()) return;
  const auto* own = dynamic_cast<const RecordedEvent*>(event.state().get());
  if (!own) return event.Wait();  // of a device that this one cannot wait for
  card_.Select();
  Check(cudaStreamWaitEvent(stream_, own->event()), "cudaStreamWaitEvent");
}

}  // namespace trireme::cuda
