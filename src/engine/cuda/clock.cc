#include "engine/cuda/clock.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "engine/cuda/check.h"

namespace trireme::cuda {
namespace {

constexpr double kYoung = 1;  // seconds: a float then tells 0.1 us apart

double SecondsBetween(cudaEvent_t from, cudaEvent_t to) {
  float milliseconds = 0;
  Check(cudaEventElapsedTime(&milliseconds, from, to), "cudaEventElapsedTime");
  return double(milliseconds) / 1e3;
}

}  // namespace

EventClock::~EventClock() {
  for (const Reference* each : {&reference_, &next_}) {
    if (each->event) cudaEventDestroy(each->event);
  }
}

void EventClock::Start(cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  for (Reference* each : {&reference_, &next_}) {
    Check(cudaEventCreate(&each->event), "cudaEventCreate");
  }
  // The second time nothing of the driver is still to be set up.
  for (int i = 0; i < 2; ++i) {
    Check(cudaEventRecord(reference_.event, stream), "cudaEventRecord");
    Check(cudaEventSynchronize(reference_.event), "cudaEventSynchronize");
    reference_.at_s = reference_.recorded_s = Now();
  }
}

void EventClock::Tick(cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  if (pending_) return TakeNext();
  const double now = Now();
  if (now - reference_.recorded_s < kYoung) return;
  next_.recorded_s = now;
  Check(cudaEventRecord(next_.event, stream), "cudaEventRecord");
  pending_ = true;
}

double EventClock::TimeOf(cudaEvent_t fired) {
  const std::lock_guard lock(mutex_);
  if (pending_) TakeNext();
  return std::min(Now(), reference_.at_s + SecondsBetween(reference_.event, fired));
}

void EventClock::TakeNext() {
  const cudaError_t status = cudaEventQuery(next_.event);
  if (status == cudaErrorNotReady) return;
  Check(status, "cudaEventQuery");
  // The card's clock may run a little faster or slower than the host's. It fired after it was
  // recorded and before now.
  const double at_s = reference_.at_s + SecondsBetween(reference_.event, next_.event);
  next_.at_s = std::clamp(at_s, next_.recorded_s, std::max(next_.recorded_s, Now()));
  std::swap(reference_, next_);
  pending_ = false;
}

}  // namespace trireme::cuda
