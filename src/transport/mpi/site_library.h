#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace trireme {

// MPI libraries whose handles look alike in memory: one plugin serves all of a kind.
enum class MpiKind { kOpenMpi, kMpich, kStandardAbi };
std::string_view NameOf(MpiKind kind);  // openmpi, mpich, abi: as in trireme-mpi-NAME.so

// A file that may be the machine's MPI, and what led to it.
struct MpiCandidate {
  std::string path;    // without a slash: the loader looks for it
  std::string why;     // "beside mpirun (/opt/mpi/bin/mpirun)"
  bool named = false;  // by somebody: another one is not tried
};

// A process above this one: its program, and the libraries of MPI that it has loaded.
struct MpiAncestor {
  std::string program;
  std::vector<std::string> loaded;
};
std::vector<MpiAncestor> ReadAncestors();  // the nearest first

// What says where a machine's MPI is. `variable` gives an environment variable or null.
struct MpiPlaces {
  std::string wanted;  // transport.mpi_library
  FunctionRef<const char*(const char*)> variable;
  std::vector<MpiAncestor> ancestors;
};

// All of them, the best first: what is named (transport.mpi_library, TRIREME_MPI_LIBRARY), what a
// launcher above this process has loaded, beside that launcher, beside mpirun of PATH, I_MPI_ROOT,
// MPI_HOME, where the loader looks.
std::vector<MpiCandidate> MpiCandidates(const MpiPlaces& places);

// A library of MPI in this process, opened so that a plugin finds its functions.
struct SiteMpi {
  MpiKind kind;
  std::string path;
  std::string why;
};

// Opens the first candidate that is an MPI library and that the launcher's (Launched::launcher, or
// nothing) processes can use; one that the process has loaded already (LD_PRELOAD) wins. Throws
// Error: there is none, the one that is named is none, or the process has another one loaded.
SiteMpi OpenSiteMpi(const std::vector<MpiCandidate>& candidates, std::string_view launcher);

}  // namespace trireme
