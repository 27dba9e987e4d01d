#pragma once
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/deadline.h"
#include "transport/group.h"
#include "transport/mpi/library.h"
#include "transport/mpi/turn.h"

namespace trireme {

// All ranks of an MPI job.
//
// MPI moves bytes only inside its calls, so whoever waits drives everything that is on its way. A
// receive is nothing until its message is there: then its length is compared, and only then MPI
// gets the memory. So a wrong length is an error that names both, and a receive that will never be
// served is taken back without MPI's help. News of a lost rank travel beside the data, and everyone
// who waits looks for them.
class MpiGroup : public Group {
 public:
  struct Place {
    int rank, size, largest_tag;
  };
  // Messages longer than `piece_bytes` travel in pieces: MPI counts in int.
  MpiGroup(const MpiLibrary& library, Place place, double timeout_s, size_t piece_bytes);

  int rank() const override { return place_.rank; }
  int size() const override { return place_.size; }
  Ticket Send(int to, Tag tag, std::span<const std::byte> bytes) override;
  Ticket Receive(int from, Tag tag, std::span<std::byte> bytes) override;
  void Abort(std::string_view reason) noexcept override;
  Volume volume() const override;
  bool NativeSum(std::span<float> values) override;

  bool finished() const;  // a rank is lost
  // After the end of a finished group: gives the news a moment to leave.
  void Depart() noexcept;

  // For links, whose calls take turns with the group's. By whoever has the turn:
  MpiTurns& turns() { return turns_; }
  void Pass();                              // moves what can move, and reads the news
  std::optional<std::string> Loss() const;  // of a finished group, in words
  bool Ok(int error, int peer);             // of an MPI call; false: the peer is lost
  void Lose(int rank, std::string_view reason);

 private:
  enum class Stage { kWaiting, kMoving, kDone, kFailed };
  enum class Kind { kSend, kReceive, kSum };
  struct Node final : Transfer {
    void Wait() override { group->Wait(*this); }
    void Finish() noexcept override { group->Finish(*this); }
    MpiGroup* group = nullptr;
    Kind kind = Kind::kSend;
    int peer = 0;
    Tag tag = 0;
    std::byte* data = nullptr;
    size_t size = 0, posted = 0;             // bytes that MPI was given
    std::vector<TriremeMpiHandle> requests;  // pieces that MPI still holds
    Deadline deadline;
    Stage stage = Stage::kWaiting;
    std::string error;
  };
  // Receives of one sender and tag that no message has met yet, in order.
  struct Stream {
    int from;
    Tag tag;
    std::vector<Node*> nodes;
  };
  // What every rank is told. Sent as it lies in memory: the ranks of a job run one program.
  struct News {
    int32_t lost = -1;  // -1: nobody in particular
    char reason[1020] = "";
  };

  Ticket Post(Kind kind, int peer, Tag tag, std::byte* data, size_t size);
  Ticket StartSum(std::span<float> values);
  void Wait(Node& node);
  void Finish(Node& node) noexcept;
  bool TakeBack(Node& node);  // true: MPI does not touch the node's memory any more

  void StartSend(Node& node);
  bool Match(Stream& stream);
  void Refuse(Node& node, size_t found);
  void Test(Node& node);
  void ReadNews();

  void Silent(Node& node);
  std::string Lost() const;
  Node& NewNode(Kind kind, int peer, Tag tag, std::byte* data, size_t size);
  Stream& StreamOf(int from, Tag tag);
  const TriremeMpiTable& mpi() const { return library_.table(); }

  const MpiLibrary& library_;
  const Place place_;
  const double timeout_s_;
  const size_t piece_bytes_;

  mutable MpiTurns turns_;  // whoever has the turn may also use all below
  std::map<std::pair<int, Tag>, Stream> streams_;
  std::vector<Stream*> waiting_;  // streams with a receive
  std::vector<Node*> moving_;     // nothing to do but to test their requests
  std::deque<Node> nodes_;
  std::vector<Node*> free_;
  Volume volume_;
  int passes_ = 0;

  bool finished_ = false;
  News news_;  // when finished
  std::vector<TriremeMpiHandle> telling_;
  Deadline last_moment_;  // when finished: for what is still on its way
};

}  // namespace trireme
