#pragma once
#include <memory>

#include "transport/acceptor.h"
#include "transport/group.h"
#include "transport/link.h"

namespace trireme {

class Memory;

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
  // The group of those that give the same `number`, this rank as `member` of `members`. Where there
  // is a group of all, all of its ranks call it, those of no such group with -1, 0 and 1.
  virtual Group& Subgroup(int number, int member, int /*members*/) {
    subgroup_ = group().Split(number + 1, member);
    return *subgroup_;
  }
  // Of a server, where clients may come that are no ranks; null: nowhere.
  virtual Acceptor* acceptor() { return nullptr; }
  // Memory that all ranks of the job share in a box (transport.memory); null: there is none.
  virtual Memory* memory() { return nullptr; }
  // Where the transport itself gives ranks such memory: for values of so many bytes. All ranks call
  // it, once; memory() is the same from then on. Null: it does not.
  virtual Memory* ShareMemory(uint64_t /*bytes*/) { return nullptr; }
  // This rank has done a step, or served one: whoever starts ranks again tells lives of use from
  // others by it.
  virtual void Worked() {}

 private:
  std::unique_ptr<Group> subgroup_;
};

}  // namespace trireme
