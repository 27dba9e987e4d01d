#include "transport/mpi/world.h"

#include <exception>

#include "base/error.h"
#include "transport/mpi/group.h"
#include "transport/mpi/library.h"
#include "transport/mpi/links.h"
#include "transport/mpi/window.h"

namespace trireme {
namespace {

MpiGroup::Place Join(MpiLibrary& library, const MpiSetup& setup) {
  library.Join();
  MpiGroup::Place place{};
  library.Check(library.table().place(&place.rank, &place.size, &place.largest_tag),
                "MPI_Comm_rank");
  if (!setup.launched) return place;
  const Launched& launched = *setup.launched;
  const int size = launched.size.value_or(place.size);
  if (place.size == size && place.rank == launched.rank) return place;
  const std::string name = library.Name();
  if (place.size == 1) library.table().leave();  // a world of its own: nobody else to wait for
  throw Error(
      "{} started this process as rank {} of {}, but the MPI library of {} ({}) sees rank {} of "
      "{}: the launcher belongs to a different MPI; use this library's mpirun, or a plugin built "
      "with the launcher's mpicc (`trireme doctor` says how)",
      launched.launcher, launched.rank, size, library.path(), name, place.rank, place.size);
}

class MpiWorld : public World {
 public:
  explicit MpiWorld(const MpiSetup& setup)
      : library_(OpenMpi({setup.plugin, setup.library,
                          setup.launched ? setup.launched->launcher : std::string_view()})),
        timeout_s_(setup.timeout_s),
        group_(library_, Join(library_, setup), setup.timeout_s, setup.piece_bytes),
        links_(std::make_unique<MpiLinks>(group_, library_, setup.timeout_s, setup.piece_bytes)) {}

  ~MpiWorld() override {
    if (std::uncaught_exceptions() > exceptions_) group_.Abort("stopped by an error");
    links_->End();
    if (group_.finished()) {
      // MPI may still write to what the links were receiving, and the process is about to end.
      static_cast<void>(links_.release());
      if (window_) window_->Forget();
      group_.Depart();
    } else {
      window_.reset();
      library_.table().leave();
    }
  }

  Group& group() override { return group_; }
  Link& LinkTo(int rank) override { return links_->To(rank); }
  Memory* memory() override { return memory_.get(); }
  Memory* ShareMemory(uint64_t bytes) override {
    window_ = std::make_unique<MpiWindow>(group_, library_, bytes, timeout_s_);
    memory_ = window_->OfAll();
    return memory_.get();
  }

 private:
  MpiLibrary library_;
  const double timeout_s_;
  MpiGroup group_;
  std::unique_ptr<MpiLinks> links_;
  std::unique_ptr<MpiWindow> window_;
  std::unique_ptr<Memory> memory_;
  const int exceptions_ = std::uncaught_exceptions();
};

}  // namespace

std::unique_ptr<World> JoinMpi(const MpiSetup& setup) { return std::make_unique<MpiWorld>(setup); }

}  // namespace trireme
