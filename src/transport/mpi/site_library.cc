#include "transport/mpi/site_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/child_process.h"
#include "base/error.h"
#include "base/proc_file.h"
#include "base/text.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

// Open MPI 3 to 5; MPICH and those of its family; Debian's MPICH; the standard ABI of MPI 5.
struct MpiFileName {
  std::string_view file;
  MpiKind kind;
};
constexpr MpiFileName kFiles[] = {{"libmpi.so.40", MpiKind::kOpenMpi},
                                  {"libmpi.so.12", MpiKind::kMpich},
                                  {"libmpich.so.12", MpiKind::kMpich},
                                  {"libmpi_abi.so.1", MpiKind::kStandardAbi},
                                  {"libmpi_abi.so.0", MpiKind::kStandardAbi}};

std::optional<MpiKind> KindByName(const fs::path& path) {
  const std::string name = path.filename().string();
  for (const MpiFileName& known : kFiles) {
    if (name.starts_with(known.file)) return known.kind;
  }
  return std::nullopt;
}

void AddFolder(const fs::path& folder, const std::string& why, std::vector<MpiCandidate>& found) {
  for (const MpiFileName& known : kFiles) {
    const fs::path path = folder / known.file;
    std::error_code none;
    if (fs::exists(path, none)) found.push_back({path.string(), why});
  }
}

// A program lies in bin, its libraries in lib or one of its neighbours.
void AddBeside(const fs::path& program, const std::string& why, std::vector<MpiCandidate>& found) {
  if (program.empty()) return;
  std::error_code none;
  const fs::path real = fs::canonical(program, none);
  for (const fs::path& at : {program, real}) {
    const fs::path root = at.parent_path().parent_path();
    if (root.empty() || root == "/usr" || root == "/") continue;  // the loader's own places
    for (const char* folder : {"lib", "lib64", "lib/release"}) AddFolder(root / folder, why, found);
  }
}

template <class F>
F* Function(void* library, const char* name) {
  return reinterpret_cast<F*>(dlsym(library, name));
}

// Nothing: it is no MPI library.
std::optional<MpiKind> KindOf(void* library) {
  if (dlsym(library, "MPI_Init_thread") == nullptr) return std::nullopt;
  if (dlsym(library, "ompi_mpi_comm_world") != nullptr) return MpiKind::kOpenMpi;
  int major = -1, minor = -1;
  if (auto* const ask = Function<int(int*, int*)>(library, "MPI_Abi_get_version")) {
    if (ask(&major, &minor) == 0 && major >= 1) return MpiKind::kStandardAbi;
  }
  return MpiKind::kMpich;
}

std::string FileOf(void* symbol) {
  Dl_info info{};
  return dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

bool SameFile(const std::string& a, const std::string& b) {
  std::error_code none;
  return a == b || fs::equivalent(a, b, none);
}

// Whether processes that this launcher starts can be ranks of a library of this kind. Others
// (Slurm, PMIx) start either.
bool Fits(MpiKind kind, std::string_view launcher) {
  if (launcher == "Open MPI") return kind != MpiKind::kMpich;
  if (launcher == "MPICH (PMI)" || launcher == "MVAPICH") return kind != MpiKind::kOpenMpi;
  return true;
}

std::string LoaderWords() {
  const char* text = dlerror();
  return text != nullptr ? text : "no reason given";
}

std::string Unfit(std::string_view launcher) {
  return fmt::format(
      "is not an MPI that {0} starts; use its own mpirun, or name the library of {0} with "
      "transport.mpi_library",
      launcher);
}

// What speaks against this file, and its kind. Opens it, unless its name says enough.
std::string Problem(const MpiCandidate& candidate, std::string_view launcher, MpiKind& kind,
                    std::string& file) {
  // Opening a library leaves its own libraries behind, which the next one may trip over.
  if (const auto guess = KindByName(candidate.path);
      !candidate.named && guess && !Fits(*guess, launcher)) {
    return Unfit(launcher);
  }
  // First so that nobody else sees it: it may be the wrong one.
  void* const library = dlopen(candidate.path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return fmt::format("cannot be loaded: {}", LoaderWords());
  const std::optional<MpiKind> found = KindOf(library);
  std::string problem;
  if (!found) {
    problem = "is no MPI library: it has no MPI_Init_thread";
  } else if (!Fits(*found, launcher)) {
    problem = Unfit(launcher);
  } else {
    kind = *found;
    file = FileOf(dlsym(library, "MPI_Init_thread"));
    dlopen(candidate.path.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  }
  dlclose(library);
  return problem;
}

// Somebody else has loaded an MPI, as LD_PRELOAD does: no other one may come to it.
SiteMpi Present(void* init, const std::vector<MpiCandidate>& candidates,
                std::string_view launcher) {
  const std::string file = FileOf(init);
  for (const MpiCandidate& candidate : candidates) {
    if (candidate.named && !SameFile(candidate.path, file)) {
      throw Error(
          "{} ({}) is another MPI than {}, which this process has loaded already (LD_PRELOAD); "
          "remove one of them",
          candidate.path, candidate.why, file);
    }
  }
  const MpiKind kind = KindOf(RTLD_DEFAULT).value_or(MpiKind::kMpich);
  if (!Fits(kind, launcher)) {
    throw Error("{}, which this process has loaded (LD_PRELOAD), {}", file, Unfit(launcher));
  }
  return {kind, file, "loaded before the program began"};
}

}  // namespace

std::string_view NameOf(MpiKind kind) {
  return kind == MpiKind::kOpenMpi ? "openmpi" : kind == MpiKind::kMpich ? "mpich" : "abi";
}

std::vector<MpiCandidate> MpiCandidates(const MpiPlaces& places) {
  const auto text = [&](const char* name) -> std::string {
    const char* value = places.variable(name);
    return value != nullptr ? value : "";
  };
  if (!places.wanted.empty()) return {{places.wanted, "transport.mpi_library", true}};
  if (const std::string named = text("TRIREME_MPI_LIBRARY"); !named.empty()) {
    return {{named, "TRIREME_MPI_LIBRARY", true}};
  }
  std::vector<MpiCandidate> found;
  for (const MpiAncestor& process : places.ancestors) {
    for (const std::string& path : process.loaded) {
      found.push_back({path, fmt::format("loaded by {}", process.program)});
    }
    AddBeside(process.program, fmt::format("beside {}", process.program), found);
  }
  const std::string mpirun = FindProgram("mpirun", text("PATH"));
  AddBeside(mpirun, fmt::format("beside {}", mpirun), found);
  for (const char* name : {"I_MPI_ROOT", "MPI_HOME"}) {
    const std::string root = text(name);
    if (root.empty()) continue;
    for (const char* folder : {"lib", "lib64", "lib/release", "intel64/lib/release"}) {
      AddFolder(fs::path(root) / folder, name, found);
    }
  }
  for (const MpiFileName& known : kFiles) {
    found.push_back({std::string(known.file), "found by the loader"});
  }
  return found;
}

std::vector<MpiAncestor> ReadAncestors() {
  constexpr int kMost = 8;  // of a launcher, a wrapper, a shell
  std::vector<MpiAncestor> ancestors;
  std::string pid = std::to_string(getppid());
  for (int i = 0; i < kMost && pid != "0" && pid != "1"; ++i) {
    const std::string folder = fmt::format("/proc/{}", pid);
    std::error_code none;
    MpiAncestor process{.program = fs::read_symlink(folder + "/exe", none).string(), .loaded = {}};
    for (const std::string& line : Split(ReadProcFile(folder + "/maps").value_or(""), '\n')) {
      const size_t slash = line.find('/');
      const std::string path = slash == line.npos ? "" : line.substr(slash);
      const bool known = std::ranges::find(process.loaded, path) != process.loaded.end();
      if (!known && KindByName(path)) process.loaded.push_back(path);
    }
    ancestors.push_back(std::move(process));
    const std::string status = ReadProcFile(folder + "/status").value_or("");
    const size_t at = status.find("\nPPid:");
    if (at == status.npos) break;
    pid = Trim(Split(std::string_view(status).substr(at + 6), '\n').front());
  }
  return ancestors;
}

SiteMpi OpenSiteMpi(const std::vector<MpiCandidate>& candidates, std::string_view launcher) {
  if (void* const init = dlsym(RTLD_DEFAULT, "MPI_Init_thread"))
    return Present(init, candidates, launcher);
  std::vector<std::string> refused;
  for (const MpiCandidate& candidate : candidates) {
    SiteMpi site{.kind = MpiKind::kMpich, .path = {}, .why = candidate.why};
    const std::string problem = Problem(candidate, launcher, site.kind, site.path);
    if (problem.empty()) return site;
    std::string words = fmt::format("{} ({}) {}", candidate.path, candidate.why, problem);
    if (candidate.named) throw Error("{}", words);
    // What the loader was only asked for may be anywhere, or nowhere.
    if (candidate.path.find('/') != std::string::npos) refused.push_back(std::move(words));
  }
  if (!refused.empty()) throw Error("no MPI library fits: {}", fmt::join(refused, "; "));
  throw Error(
      "this machine has no MPI library{} that can be found; load its module, or name it with "
      "--set transport.mpi_library=FILE or TRIREME_MPI_LIBRARY",
      launcher.empty() ? " (libmpi.so)" : fmt::format(" that {} starts", launcher));
}

}  // namespace trireme
