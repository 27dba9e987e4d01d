#pragma once
#include <map>
#include <memory>
#include <thread>

#include "transport/mpi/link.h"

namespace trireme {

// A rank's ends of its links with others; both ranks of a link ask for their end. MPI moves bytes
// only inside its calls, and whoever serves links waits for an event, not for MPI: from the first
// link on a thread looks after them.
class MpiLinks {
 public:
  MpiLinks(MpiGroup& group, const MpiLibrary& library, double timeout_s, size_t piece_bytes)
      : group_(group), library_(library), timeout_s_(timeout_s), piece_bytes_(piece_bytes) {}

  Link& To(int rank);  // thread-safe

  // In good order: all that was sent has arrived here and there. Nobody may use a link any more.
  // Waits for the others as MPI_Finalize does, or until the group is finished.
  void End() noexcept;

 private:
  void Look(const std::stop_token& stop);

  MpiGroup& group_;
  const MpiLibrary& library_;
  const double timeout_s_;
  const size_t piece_bytes_;
  std::map<int, std::unique_ptr<MpiLink>> links_;  // of whoever has the turn
  std::jthread thread_;
};

}  // namespace trireme
