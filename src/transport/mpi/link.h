#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transport/link_inbox.h"
#include "transport/mpi/group.h"
#include "transport/mpi/library.h"

namespace trireme {

// One end of a link between two ranks of an MPI job. MPI loses nothing and keeps the order, so a
// message is simply sent. An offer is on its way until the other end has found it: only then the
// next one follows. A rank that is lost ends the job: no end is ever cut off, or another one.
class MpiLink : public Link {
 public:
  MpiLink(MpiGroup& group, const MpiLibrary& library, int peer, double timeout_s,
          size_t piece_bytes);

  void Send(Message message) override;
  void Offer(Message message) override;
  void SendShared(std::shared_ptr<const Message> message) override;
  void OfferShared(std::shared_ptr<const Message> message) override;
  Arrival Receive(Message& message, Deadline deadline) override;
  void Close() noexcept override;
  void SetWakeEvent(WakeEvent* wake) override;
  double timeout_s() const override { return timeout_s_; }

  // By whoever has the turn (see MpiGroup::turns).
  bool Move();                         // what can move; false: nothing could
  void End();                          // nothing is sent any more; after all that was sent
  bool ended() const;                  // both ends have, and MPI is through with it
  void Abort(const std::string& why);  // Receive throws PeerLost from now on

 private:
  enum class Frame : int64_t { kMessage, kOffer, kClose, kEnd };
  // Before the body: what it is, the message's kind, the floats of the body, and all its ints.
  static constexpr size_t kHead = 3;
  struct Outgoing {
    std::vector<int64_t> head;
    std::shared_ptr<const Message> message;
    std::vector<TriremeMpiHandle> requests;  // that MPI still holds
    bool offer = false;
  };
  struct Incoming {
    enum class Stage { kNothing, kHead, kBody } stage = Stage::kNothing;
    std::vector<int64_t> head;
    Message message;
    size_t posted = 0;  // bytes of the body that MPI was given
    std::vector<TriremeMpiHandle> requests;
  };

  void Post(Frame frame, std::shared_ptr<const Message> message);
  bool MoveOut();
  bool MoveIn();
  int Find(TriremeMpiHandle& piece);
  bool Fetch(TriremeMpiHandle& piece, void* data, int bytes);
  bool FindHead();
  bool ReadHead();
  bool FindBody();
  bool Done(std::vector<TriremeMpiHandle>& requests);  // with all of them
  void Take(Frame frame, Message message);
  const TriremeMpiTable& mpi() const { return library_.table(); }

  MpiGroup& group_;
  const MpiLibrary& library_;
  const int peer_;
  const double timeout_s_;
  const size_t piece_bytes_;

  // Of whoever has the turn.
  std::vector<Outgoing> out_;
  std::shared_ptr<const Message> waiting_offer_;
  bool closed_here_ = false, ended_here_ = false, ended_there_ = false;
  Incoming in_;

  std::mutex mutex_;  // guards inbox_
  LinkInbox inbox_;
};

}  // namespace trireme
