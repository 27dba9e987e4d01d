#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "flat/device.h"

namespace trireme {

// What takes time on a pretended device.
enum class PretendWork { kForward, kBackward, kUpdate, kPut, kGet, kSum };

// A device that is nothing but the processor, yet behaves like the strictest accelerator: the host
// may not touch its memory (a Slice's address is never readable), work runs late on each queue's
// own thread, events fire later still, freed memory is gone, and copies reach only host memory that
// it allocated or registered. What a CUDA device forgives sometimes, this one never does.
// Thread-safe.
class PretendDevice : public Device {
 public:
  // By default its clock is the host's. With `seconds` it has one for each queue, which such work
  // moves on and nothing else, and which a queue that waits for an event sets to no less than the
  // event's: what is measured by marks is then the same however busy the machine is.
  using Seconds = std::function<double(PretendWork)>;
  explicit PretendDevice(Seconds seconds = {});
  ~PretendDevice() override;

  std::string_view name() const override { return "pretend"; }
  bool host_visible() const override { return false; }
  const FlatTable& table() const override;
  std::unique_ptr<Queue> NewQueue() override;
  Slice Allocate(size_t floats) override;
  void Free(Slice slice) noexcept override;
  size_t allocated_bytes() const override { return allocated_.load(); }
  size_t free_bytes() const override;
  void* AllocateHost(size_t bytes) override;
  void FreeHost(void* memory, size_t bytes) noexcept override;
  void Register(std::span<std::byte> memory) override;
  void Unregister(std::span<std::byte> memory) noexcept override;

  // Ends the program if a copy would touch host memory that is neither allocated nor registered.
  void CheckReach(const void* host, size_t bytes);
  // For commands of a queue only: the same memory at the address where it can be touched.
  Slice Inside(Slice slice) const;

 private:
  friend class PretendQueue;
  class Fired;
  void FireLate(std::shared_ptr<Fired> event);
  void FireEvents(std::stop_token stop);

  const Seconds seconds_;
  std::byte* outside_ = nullptr;  // addresses of slices: never readable
  std::byte* inside_ = nullptr;   // the memory; readable where allocated
  mutable std::mutex mutex_;
  size_t used_ = 0;                         // bytes; guarded by mutex_. Addresses are never reused
  std::deque<std::shared_ptr<Fired>> due_;  // guarded by mutex_
  std::map<const std::byte*, size_t> reached_;  // host memory, bytes by address; guarded by mutex_
  std::atomic<size_t> allocated_ = 0;
  std::condition_variable_any changed_;
  std::atomic<uint64_t> queues_ = 0;  // made so far: seeds of their delays
  std::jthread firing_;
};

// Runs commands in order on a thread of its own, some of them after a nap.
class PretendQueue : public Queue {
 public:
  PretendQueue(PretendDevice& device, uint64_t seed);
  ~PretendQueue() override;  // after all work

  Event Record() override;
  Event Mark() override { return Record(); }
  void Wait(const Event& event) override;
  // Copies in the command point to memory of device().Inside(), or to the host's.
  void Do(std::function<void()> command);
  void Spend(PretendWork work);  // in a command

 private:
  void Push(std::function<void()> command);
  void Work(std::stop_token stop);

  double Time() const;  // in a command

  PretendDevice& pretend_;
  double time_s_ = 0;        // of the thread: pretended
  std::minstd_rand random_;  // of the thread
  std::mutex mutex_;
  std::deque<std::function<void()>> commands_;  // guarded by mutex_
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace trireme
