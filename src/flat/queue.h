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
};

// A point in a queue: fires when all work before it is done. Made only by Queue::Record, so its
// work is already enqueued; a default-made Event was never recorded and waiting for it is a bug.
class Event {
 public:
  Event() = default;
  explicit Event(std::shared_ptr<EventState> state) : state_(std::move(state)), recorded_(true) {}
  static Event Fired() { return Event(nullptr); }  // for queues whose work runs at once

  bool recorded() const { return recorded_; }
  const std::shared_ptr<EventState>& state() const { return state_; }  // null: has fired
  void Wait() const;                                                   // blocks the caller

 private:
  std::shared_ptr<EventState> state_;
  bool recorded_ = false;
};

// Where a device's work is enqueued; work of one queue runs in order. Enqueueing never waits for
// the work. One thread at a time may use a queue. The destructor waits until all work is done.
class Queue {
 public:
  virtual ~Queue() = default;
  virtual Event Record() = 0;
  virtual void Wait(const Event& event) = 0;  // later work of this queue waits; the caller does not
  void Sync() { Record().Wait(); }            // the caller blocks until all is done
  Device& device() const { return device_; }

 protected:
  explicit Queue(Device& device) : device_(device) {}

 private:
  Device& device_;
};

}  // namespace trireme
