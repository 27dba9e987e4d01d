#include "cli/parts.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>

#include "base/child_process.h"
#include "base/error.h"
#include "base/proc_file.h"
#include "base/text.h"
#include "transport/fabric/library.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

using Names = std::initializer_list<const char*>;

// A library is asked for by the loader itself: only it knows all the places. Nothing is called. It
// stays loaded: what some take at their start they do not give back at their end.
std::string FindLibrary(const char* name) {
  void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return "";
  const link_map* map = nullptr;
  const bool known = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr;
  const std::string path = known && map->l_name[0] != '\0' ? map->l_name : name;
  dlclose(library);
  return path;
}

std::vector<std::string> FindFiles(Names programs, Names libraries) {
  const char* folders = std::getenv("PATH");
  std::vector<std::string> found;
  for (const char* name : programs) found.push_back(FindProgram(name, folders ? folders : ""));
  for (const char* name : libraries) found.push_back(FindLibrary(name));
  std::erase(found, "");
  return found;
}

// What the driver says about each GPU, without loading it.
std::vector<std::string> GpuModels() {
  std::vector<std::string> models;
  std::error_code none;
  for (const auto& gpu : fs::directory_iterator("/proc/driver/nvidia/gpus", none)) {
    const auto text = ReadProcFile(gpu.path() / "information").value_or("");
    const std::string first = Split(text, '\n').front();  // Model:  NVIDIA H200
    models.emplace_back(Trim(first.substr(first.find(':') + 1)));
  }
  std::erase(models, "");
  return models;
}

std::vector<std::string> FashionMnist() {
  const fs::path folder = "/usr/share/datasets/fashion-mnist";  // of Debian's package
  std::error_code none;
  if (!fs::is_directory(folder, none)) return {};
  return {folder.string()};
}

// The library is of use only with the plugin, which says more where something is wrong.
Part LibfabricPart() {
  Part part = {"libfabric", {}, "the way `fabric` to a memory box (docs/memory.md)"};
  try {
    const FabricLibrary& library = FabricLibrary::Get();
    part.found = {fmt::format("{}, plugin {}", library.Name(), library.path())};
  } catch (const Error& error) {
    part.use += fmt::format(": {}", error.what());
  }
  return part;
}

}  // namespace

std::vector<Part> FindParts() {
  Part cuda = {"CUDA", FindFiles({"nvidia-smi"}, {"libcuda.so.1"}),
               "used by engine cuda through its plugin (docs/gpu.md)"};
  for (std::string& model : GpuModels()) cuda.found.push_back(std::move(model));
  return {
      std::move(cuda),
      {"MPI", FindFiles({"mpirun"}, {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12"}),
       "used through its plugin, see below"},
      LibfabricPart(),
      {"Slurm", FindFiles({"srun"}, {}),
       "`trireme launch slurm` writes scripts for sbatch; ranks that srun starts find each other"},
      {"Fashion-MNIST", FashionMnist(),
       "data.source = \"fashion-mnist\" (Debian package dataset-fashion-mnist)"},
  };
}

}  // namespace trireme
