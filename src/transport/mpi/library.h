#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "transport/mpi/plugin.h"
#include "transport/mpi/site_library.h"

namespace trireme {

// A loaded plugin: an MPI library behind the C table of plugin.h. It stays in memory until the
// process ends: MPI cannot be unloaded.
class MpiLibrary {
 public:
  explicit MpiLibrary(std::string path);  // throws when it is no plugin of this version
  // The plugin for the machine's MPI, from the program itself. Throws where there is none for it.
  explicit MpiLibrary(const SiteMpi& site);

  const std::string& path() const { return path_; }  // of the plugin, or how to call it
  const std::string& why() const { return why_; }    // it was taken
  const TriremeMpiTable& table() const { return *table_; }
  std::string Name() const;           // in the library's own words: Open MPI v4.1.4, ...
  std::string_view Starters() const;  // what starts its ranks, in words
  std::string Explain(int error) const;
  void Check(int error, std::string_view what) const;  // throws what the library says of an error

  void Join();  // the job, once per process

 private:
  std::string path_;
  std::string why_;
  const TriremeMpiTable* table_;
};

// What somebody chose: transport.plugin, transport.mpi_library, what started the process.
struct MpiWishes {
  std::string plugin, library;
  std::string_view launcher;
};
// A plugin that is a file wins: `wishes.plugin`, TRIREME_MPI_PLUGIN, one beside the program. Else
// the machine's MPI library is found and the plugin for it taken from the program.
MpiLibrary OpenMpi(const MpiWishes& wishes);

// The plugins in a folder, the best one for that launcher (Launched::launcher, or nothing) first:
// trireme-mpi.so, which a site built for itself, then trireme-mpi-LIBRARY.so.
std::vector<std::string> MpiPluginsIn(const std::string& folder, std::string_view launcher);

// The file of a plugin: `wanted` (a path, where somebody chose one), else what TRIREME_MPI_PLUGIN
// (`from_environment`) says, else the first beside the program. Empty when there is none.
std::string FindMpiPlugin(const std::string& wanted, const char* from_environment,
                          std::string_view launcher);
// Throws where there is neither a file nor a plugin inside the program.
void RequireMpiPlugin();

// The text of plugin.h and plugin.c, and how to make a plugin of them: the program is one file.
struct MpiPluginSource {
  std::string_view header, code;
};
MpiPluginSource GetMpiPluginSource();
inline constexpr std::string_view kMpiPluginCommand =
    "mpicc -shared -fPIC -O2 -o trireme-mpi.so plugin.c";

}  // namespace trireme
