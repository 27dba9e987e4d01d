#pragma once
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "transport/deadline.h"
#include "transport/group.h"
#include "transport/shared_memory.h"
#include "transport/shm/segment.h"

namespace trireme {

// One rank's view of a segment. Bytes move while somebody waits, posts or finishes; whoever does so
// moves all of this rank's transfers.
class ShmGroup : public Group, private SharedMemory {
 public:
  ShmGroup(ShmSegment& segment, int rank, double timeout_s);

  int rank() const override { return rank_; }
  int size() const override { return segment_.ranks(); }
  Ticket Send(int to, Tag tag, std::span<const std::byte> bytes) override;
  Ticket Receive(int from, Tag tag, std::span<std::byte> bytes) override;
  void Abort(std::string_view reason) noexcept override { segment_.Abort(rank_, reason); }
  Volume volume() const override;
  SharedMemory* shared_memory() override { return this; }

 private:
  enum class Stage { kQueued, kMoving, kDone, kFailed };
  struct Node final : Transfer {
    void Wait() override { group->Wait(*this); }
    void Finish() noexcept override { group->Finish(*this); }
    ShmGroup* group = nullptr;
    bool sends = false;
    int peer = 0;
    Tag tag = 0;
    std::byte* data = nullptr;
    size_t size = 0, moved = 0;
    uint64_t number = 0;  // in the order of its sender, receiver and tag
    int slot = -1;
    bool copying = false;  // a thread copies with the lock released
    Deadline deadline;
    Stage stage = Stage::kQueued;
    std::string error;
  };

  std::span<float> Allocate(size_t floats) override;
  bool SumInOrder(std::span<const std::span<float>> parts, std::span<float> into) override;
  void Await(int whom, FunctionRef<bool()> done) override { meeting_.Await(whom, done); }

  Ticket Post(bool sends, int peer, Tag tag, std::byte* data, size_t size);
  void Wait(Node& node);
  void Finish(Node& node) noexcept;
  bool Settled(const Node& node) const;
  void Progress(std::unique_lock<std::mutex>& lock);
  bool Advance(std::unique_lock<std::mutex>& lock, Node& node);
  bool Place(Node& node);
  bool MoveSend(Node& node);
  bool Match(Node& node);
  bool MoveReceive(std::unique_lock<std::mutex>& lock, Node& node);
  ShmSlot& SlotOf(const Node& node) const;
  std::byte* StagingOf(const Node& node) const;
  void Check(int silent);  // throws PeerLost if the group is finished, or finishes it
  [[noreturn]] void ThrowLost() const;
  Node& NewNode();

  ShmSegment& segment_;
  const int rank_;
  const double timeout_s_;
  const int spins_;
  SharedSum meeting_;
  size_t allocated_ = 0;  // of the own arena

  mutable std::mutex mutex_;  // guards all below
  std::deque<Node> nodes_;
  std::vector<Node*> free_;
  std::vector<Node*> open_;                                  // not settled, in the order posted
  std::map<std::pair<int, Tag>, uint64_t> sent_, received_;  // by peer and tag: posted so far
  Volume volume_, summed_;
};

}  // namespace trireme
