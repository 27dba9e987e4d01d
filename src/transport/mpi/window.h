#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "transport/memory.h"
#include "transport/mpi/group.h"
#include "transport/mpi/library.h"

namespace trireme {

// Memory of all ranks of an MPI job, a part of each rank's: an MPI window. All ranks make it at the
// same time, and all end together.
//
// A part is like a memory box that nobody serves: its regions, their versions and notes lie in it,
// and a client changes them by itself while it has the region's turn, a number that it drew. So
// every promise of Memory holds but those about clients that die: such a rank ends the job.
//
// MPI moves bytes only inside its calls, and where ranks do not share a machine a part's owner must
// make some: a thread does.
class MpiWindow {
 public:
  // `bytes` for the values of all regions, in equal parts. Throws where this MPI has no such
  // memory.
  MpiWindow(MpiGroup& group, const MpiLibrary& library, uint64_t bytes, double timeout_s);
  ~MpiWindow();
  MpiWindow(const MpiWindow&) = delete;
  MpiWindow& operator=(const MpiWindow&) = delete;

  // Regions in the part of one rank, or in stripes over those of all: a global array.
  std::unique_ptr<Memory> Of(int rank);
  std::unique_ptr<Memory> OfAll();

  // Instead of the destructor's good order, after an error: MPI may still use it.
  void Forget() { forgotten_ = true; }

 private:
  class Part;
  uint64_t BytesOf(int rank) const;  // of its part

  MpiGroup& group_;
  const MpiLibrary& library_;
  const uint64_t bytes_;
  const double timeout_s_;
  bool forgotten_ = false;
  std::jthread thread_;
};

}  // namespace trireme
