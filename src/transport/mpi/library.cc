#include "transport/mpi/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/plugin.h"
#include "base/text.h"
#include "transport/mpi/built_in.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

// A command that can be copied: from the source in the program to a plugin beside it.
std::string HowToGetOne() {
  const fs::path program = ProgramFile();
  const std::vector<std::string> doctor = {program.string(), "doctor", "--write-mpi-plugin",
                                           "mpi-plugin"};
  const std::vector<std::string> compiler = {"mpicc",
                                             "-shared",
                                             "-fPIC",
                                             "-O2",
                                             "-o",
                                             program.parent_path() / "trireme-mpi.so",
                                             "mpi-plugin/plugin.c"};
  return fmt::format("build one with this machine's mpicc: {} && {}", ShellLine(doctor),
                     ShellLine(compiler));
}

const TriremeMpiTable* OpenTable(const std::string& path) {
  const PluginKind kind = {"MPI", "trireme_mpi_table", TRIREME_MPI_TABLE, sizeof(TriremeMpiTable),
                           HowToGetOne};
  return static_cast<const TriremeMpiTable*>(OpenPlugin(kind, path));
}

}  // namespace

MpiLibrary::MpiLibrary(std::string path) : path_(std::move(path)), table_(OpenTable(path_)) {}

MpiLibrary::MpiLibrary(const SiteMpi& site)
    : path_(fmt::format("built in ({})", NameOf(site.kind))),
      why_(fmt::format("{}, {}", site.path, site.why)) {
  std::vector<std::string_view> names;
  for (const BuiltInMpiPlugin& plugin : BuiltInMpiPlugins()) {
    names.push_back(plugin.name);
    if (plugin.name != NameOf(site.kind)) continue;
    PluginFile file(plugin.bytes, fmt::format("trireme-mpi-{}.so", plugin.name));
    for (;;) {
      try {
        table_ = OpenTable(file.path());
        return;
      } catch (const Error& error) {
        if (!file.Move()) throw Error("{}; TMPDIR may name another folder", error.what());
      }
    }
  }
  throw Error("{} is an MPI of kind {}, and this program holds plugins for {} only; {}", site.path,
              NameOf(site.kind), fmt::join(names, ", "), HowToGetOne());
}

std::string MpiLibrary::Name() const {
  char text[1024] = "";
  Check(table_->library(text, sizeof(text)), "MPI_Get_library_version");
  return std::string(Trim(Split(text, '\n').front()));
}

std::string_view MpiLibrary::Starters() const {
  return Name().starts_with("Open MPI") ? "mpirun of Open MPI, or srun --mpi=pmix"
                                        : "mpirun of this library or of MPICH, or srun --mpi=pmi2";
}

std::string MpiLibrary::Explain(int error) const {
  char text[1024] = "";
  table_->explain(error, text, sizeof(text));
  return std::string(Trim(text));
}

void MpiLibrary::Check(int error, std::string_view what) const {
  if (error != 0) throw Error("{}: {} (MPI plugin {})", what, Explain(error), path_);
}

void MpiLibrary::Join() {
  int threads = 0;
  Check(table_->join(&threads), "MPI_Init_thread");
  if (!threads) {
    throw Error("{} allows calls from one thread only; trireme needs MPI_THREAD_SERIALIZED",
                Name());
  }
}

std::vector<std::string> MpiPluginsIn(const std::string& folder, std::string_view launcher) {
  const std::string_view suits = launcher == "Open MPI"      ? "trireme-mpi-openmpi.so"
                                 : launcher == "MPICH (PMI)" ? "trireme-mpi-mpich.so"
                                                             : "";
  const auto order = [&](const std::string& path) {
    const std::string name = fs::path(path).filename().string();
    return std::tuple(name != "trireme-mpi.so", name != suits, name);
  };
  std::vector<std::string> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if ((name == "trireme-mpi.so" || name.starts_with("trireme-mpi-")) && name.ends_with(".so")) {
      found.push_back(entry.path().string());
    }
  }
  std::sort(found.begin(), found.end(),
            [&](const std::string& a, const std::string& b) { return order(a) < order(b); });
  return found;
}

std::string FindMpiPlugin(const std::string& wanted, const char* from_environment,
                          std::string_view launcher) {
  if (!wanted.empty()) return wanted;
  if (from_environment != nullptr && from_environment[0] != '\0') return from_environment;
  const std::vector<std::string> folders = PluginFolders();
  for (const std::string& folder : folders) {
    const std::vector<std::string> found = MpiPluginsIn(folder, launcher);
    if (!found.empty()) return found.front();
  }
  return "";
}

void RequireMpiPlugin() {
  const bool is_file = !FindMpiPlugin("", std::getenv("TRIREME_MPI_PLUGIN"), "").empty();
  if (is_file || !BuiltInMpiPlugins().empty()) return;
  throw Error(
      "there is no MPI plugin (trireme-mpi*.so) in {}, and TRIREME_MPI_PLUGIN is not set; {}",
      fmt::join(PluginFolders(), " or "), HowToGetOne());
}

MpiLibrary OpenMpi(const MpiWishes& wishes) {
  const std::string file =
      FindMpiPlugin(wishes.plugin, std::getenv("TRIREME_MPI_PLUGIN"), wishes.launcher);
  if (!file.empty()) return MpiLibrary(file);
  RequireMpiPlugin();
  const auto variable = [](const char* name) -> const char* { return std::getenv(name); };
  const MpiPlaces places{wishes.library, variable, ReadAncestors()};
  return MpiLibrary(OpenSiteMpi(MpiCandidates(places), wishes.launcher));
}

}  // namespace trireme
