#pragma once
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transport/deadline.h"
#include "transport/group.h"
#include "transport/shared_memory.h"
#include "transport/shared_sum.h"

namespace trireme {

// Where the threads of one job meet: sends and receives wait here for each other, and whoever comes
// second copies straight from the sender's memory to the receiver's. Thread-safe. No memory is
// taken once there were as many transfers at a time as there will be.
class Hub {
 public:
  Hub(int size, double timeout_s);

  int size() const { return int(ranks_.size()); }
  double timeout_s() const { return timeout_s_; }
  Ticket Send(int from, int to, Tag tag, std::span<const std::byte> bytes);
  Ticket Receive(int from, int to, Tag tag, std::span<std::byte> bytes);
  void Abort(int rank, std::string_view reason) noexcept;
  Volume volume(int rank) const;

  SumPlace& meeting() { return *reinterpret_cast<SumPlace*>(meeting_.get()); }
  std::span<float> Allocate(size_t floats);
  // Throws PeerLost if the group is finished; told a rank, that one is silent, and lost.
  void Check(int rank, int silent);

 private:
  enum class Stage { kWaiting, kCopying, kDone, kFailed };
  struct Node final : Transfer {
    void Wait() override { hub->Wait(*this); }
    void Finish() noexcept override { hub->Finish(*this); }
    Hub* hub = nullptr;
    bool sends = false;
    int from = 0, to = 0;
    Tag tag = 0;
    std::byte* data = nullptr;
    size_t size = 0;
    Deadline deadline;
    Stage stage = Stage::kWaiting;
    std::string error;
    int owner() const { return sends ? from : to; }
    int peer() const { return sends ? to : from; }
  };
  struct Rank {
    std::condition_variable changed;
    std::vector<Node*> sends, receives;  // to this rank, not matched yet, in order
    Volume volume;
  };

  Ticket Post(bool sends, int from, int to, Tag tag, std::byte* data, size_t size);
  void Meet(std::unique_lock<std::mutex>& lock, Node& mine, Node& other);
  void Wait(Node& node);
  void Finish(Node& node) noexcept;
  Node& NewNode();
  void Unlink(Node& node);
  void Lose(int rank, std::string_view reason);
  std::string Lost(int rank) const;

  struct FreeAligned {
    void operator()(std::byte* memory) const;
  };
  using Memory = std::unique_ptr<std::byte, FreeAligned>;
  static Memory Zeroed(size_t bytes);

  const double timeout_s_;
  const Memory meeting_;
  mutable std::mutex mutex_;  // guards all below
  std::deque<Rank> ranks_;
  std::deque<Node> nodes_;
  std::vector<Node*> free_;
  std::vector<Memory> allocated_;  // of all ranks: until nobody can read it any more
  bool aborted_ = false;
  int lost_ = 0;
  std::string reason_;
};

// One thread-rank's view of the hub.
class ThreadGroup : public Group, private SharedMemory {
 public:
  ThreadGroup(Hub& hub, int rank)
      : hub_(hub),
        rank_(rank),
        meeting_(hub.meeting(), {.rank = rank,
                                 .size = hub.size(),
                                 .timeout_s = hub.timeout_s(),
                                 .check = [this](int silent) { hub_.Check(rank_, silent); }}) {}
  int rank() const override { return rank_; }
  int size() const override { return hub_.size(); }
  Ticket Send(int to, Tag tag, std::span<const std::byte> bytes) override {
    return hub_.Send(rank_, to, tag, bytes);
  }
  Ticket Receive(int from, Tag tag, std::span<std::byte> bytes) override {
    return hub_.Receive(from, rank_, tag, bytes);
  }
  void Abort(std::string_view reason) noexcept override { hub_.Abort(rank_, reason); }
  Volume volume() const override;
  SharedMemory* shared_memory() override { return this; }

 private:
  std::span<float> Allocate(size_t floats) override { return hub_.Allocate(floats); }
  bool SumInOrder(std::span<const std::span<float>> parts, std::span<float> into) override;
  void Await(int whom, FunctionRef<bool()> done) override { meeting_.Await(whom, done); }

  Hub& hub_;
  const int rank_;
  SharedSum meeting_;
  mutable std::mutex mutex_;
  Volume summed_;  // guarded by mutex_
};

}  // namespace trireme
