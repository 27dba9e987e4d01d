#include "transport/mpi/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/plugin.h"
#include "base/text.h"

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

}  // namespace

MpiLibrary::MpiLibrary(std::string path)
    : path_(std::move(path)),
      table_(static_cast<const TriremeMpiTable*>(OpenPlugin(
          {"MPI", "trireme_mpi_table", TRIREME_MPI_TABLE, sizeof(TriremeMpiTable), HowToGetOne},
          path_))) {}

std::string MpiLibrary::Name() const {
  char text[1024] = "";
  Check(table_->library(text, sizeof(text)), "MPI_Get_library_version");
  return std::string(Trim(Split(text, '\n').front()));
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
  throw Error(
      "there is no MPI plugin (trireme-mpi*.so) in {}, and TRIREME_MPI_PLUGIN is not set; {}",
      fmt::join(folders, " or "), HowToGetOne());
}

}  // namespace trireme
