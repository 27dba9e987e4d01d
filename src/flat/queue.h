#pragma once
#include <memory>

namespace trireme {

class Device;

// What a device knows of a point in one of its queues. Thread-safe.
class EventState {
 public:
  virtual ~EventState() = default;
  // Blocks the calling thread until the point is reached; throws Error after the deadline.
  virtual void Wait() = 0;
  virtual bool HasFired() = 0;  // does not block
  // Of a mark: when the point was reached, in seconds on the clock of base/clock.h, to some
  // microseconds however long the device has been running. Blocks as Wait does.
  virtual double FiredAt() = 0;
};

// A point in a queue: fires when all work before it is done. Made only by Queue::Record, so its
// work is already enqueued; a default-made Event was never recorded and waiting for it is a bug.
class Event {
 public:
  Event() = default;
  explicit Event(std::shared_ptr<EventState> state) : state_(std::move(state)), recorded_(true) {}
  // For queues whose work runs at once; `at_s`: of a mark.
  static Event Fired(double at_s = 0) {
    Event event(nullptr);
    event.fired_at_s_ = at_s;
    return event;
  }

  bool recorded() const { return recorded_; }
  const std::shared_ptr<EventState>& state() const { return state_; }  // null: has fired
  void Wait() const;                                                   // blocks the caller
  bool HasFired() const { return !state_ || state_->HasFired(); }
  double FiredAt() const { return state_ ? state_->FiredAt() : fired_at_s_; }  // of a mark

 private:
  std::shared_ptr<EventState> state_;
  double fired_at_s_ = 0;  // of a mark without a state
  bool recorded_ = false;
};

// Where a device's work is enqueued; work of one queue runs in order. Enqueueing never waits for
// the work. One thread at a time may use a queue. The destructor waits until all work is done.
class Queue {
 public:
  virtual ~Queue() = default;
  virtual Event Record() = 0;
  virtual Event Mark() = 0;  // an event that also knows when it fired; costs more, somewhere
  virtual void Wait(const Event& event) = 0;  // later work of this queue waits; the caller does not
  void Sync() { Record().Wait(); }            // the caller blocks until all is done
  Device& device() const { return device_; }

 protected:
  explicit Queue(Device& device) : device_(device) {}

 private:
  Device& device_;
};

}  // namespace trireme
