#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "strategy/exchange/centre.h"
#include "strategy/exchange/lease_source.h"
#include "strategy/inner/comm_thread.h"
#include "strategy/server/centre_note.h"
#include "transport/memory.h"

namespace trireme {

// A centre in remote memory: a worker gets it and adds to it by itself, on a thread of its own, in
// the order in which that was wished (ShmCaffe; Ahn et al. 2018). The note of an add names the
// leases, and the add happens only while they are still this worker's: see MemoryLedger, and
// Handout for where they always are.
class MemoryCentre final : public Centre {
 public:
  struct Place {
    Memory& memory;
    int64_t clients = 1;    // that share it
    double timeout_s = 60;  // for what rank 0 has to do first
  };
  MemoryCentre(const Place& place, LeaseSource& leases);

  void Prefetch() override;
  Snapshot Fetch(size_t floats, bool computes = false) override;
  Snapshot FetchNow(size_t floats) override;
  std::optional<Snapshot> Prefetched(size_t floats) override;
  double fetch_s() const override { return fetch_s_; }
  std::optional<Snapshot> News(size_t) override { return {}; }  // nobody offers it
  void Push(Queue& queue, Slice change, const PushHead& head, std::span<const int64_t> leases,
            std::vector<float> memory = {}) override;
  std::optional<Snapshot> Answered(size_t) override { return {}; }  // nobody answers
  bool HasRoom(std::span<const int64_t> leases) const override;
  void Settle() override;
  int64_t newest() const override { return newest_; }
  bool holds_void() const override { return leases_.holds_void(); }

  // For what else lies there: a copy of a device's values that comes when the queue is so far, and
  // something to do with it on the thread, behind what was wished before. A box that has lost its
  // contents is no error: then it is not done.
  struct Copy {
    std::vector<float> values = {};
    Event ready = Event::Fired();
    HostBuffer<float> staged = {};  // the values, where a device does not reach them
  };
  Copy CopyOf(Queue& queue, Slice from, std::vector<float> memory = {});
  using Job = std::function<void(Memory& memory, std::vector<float>& values)>;
  void Later(Copy copy, Job job);

  double waited_s() const override { return waited_s_; }
  Volume volume() const override { return place_.memory.volume(); }

 private:
  struct Task {
    Job job = {};
    Copy copy = {};
  };
  Snapshot Take(size_t floats);
  CommWork Run(Task& task);
  void Open();
  void Get();
  void Add(std::span<const float> values, const CentreNote& note, std::optional<int64_t> fence);
  void Refused(const CentreNote& note, std::optional<int64_t> fence);

  const Place place_;
  LeaseSource& leases_;
  double waited_s_ = 0;

  // The thread's.
  std::atomic<int64_t> newest_ = 0;
  std::atomic<double> fetch_s_ = 0;  // the last ones, on average
  Region centre_, fences_;
  bool opened_ = false;
  std::vector<float> spare_;  // what was added last has room for the next centre
  int refused_ = 0;           // adds in a row whose values the box did not take

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool fetching_ = false;
  std::optional<Snapshot> reply_;
  std::exception_ptr error_;

  CommThread<Task> thread_;  // last: uses the rest
};

}  // namespace trireme
