#pragma once
#include <memory>

#include "transport/acceptor.h"
#include "transport/group.h"
#include "transport/link.h"

namespace trireme {

// What a rank is given at its start. Belongs to the transport that started it.
class World {
 public:
  virtual ~World() = default;
  virtual int rank() { return group().rank(); }
  virtual int size() { return group().size(); }
  virtual Group& group() = 0;                     // of all ranks
  virtual bool together() const { return true; }  // there is such a group

  // This rank's end of the link with another one. The lower rank is the server.
  virtual Link& LinkTo(int rank) = 0;
  // The ranks of this rank's team, by their number in it: `member` of `members`. Where there is a
  // group all of its ranks call it, those of no team with -1, 0 and 1.
  virtual Group& Team(int team, int member, int /*members*/) {
    team_ = group().Split(team + 1, member);
    return *team_;
  }
  // Of a server, where clients may come that are no ranks; null: nowhere.
  virtual Acceptor* acceptor() { return nullptr; }
  // This rank has done a step, or served one: whoever starts ranks again tells lives of use from
  // others by it.
  virtual void Worked() {}

 private:
  std::unique_ptr<Group> team_;
};

}  // namespace trireme
