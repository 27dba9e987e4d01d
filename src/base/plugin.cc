#include "base/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/statvfs.h>

#include <filesystem>

#include "base/error.h"

namespace trireme {
namespace {

const char* LoaderError() {
  const char* text = dlerror();
  return text != nullptr ? text : "no reason given";
}

// The loader says only that it cannot map such a file.
std::string NoexecWords(const std::string& file) {
  struct statvfs place {};
  if (statvfs(file.c_str(), &place) != 0 || (place.f_flag & ST_NOEXEC) == 0) return "";
  return fmt::format("; {} is mounted noexec: copy the plugin to a folder where programs may run",
                     std::filesystem::path(file).parent_path().string());
}

}  // namespace

const void* OpenPlugin(const PluginKind& kind, const std::string& path) {
  // A name without a slash would be looked for in the system's folders.
  const std::string file = path.find('/') == path.npos ? "./" + path : path;
  // Local: two plugins may hold the same names. They cannot be unloaded: MPI and CUDA leave
  // threads.
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const std::string words = LoaderError();
    throw Error("cannot load the {} plugin {}: {}{}", kind.name, path, words, NoexecWords(file));
  }
  const auto get = reinterpret_cast<const uint32_t* (*)()>(dlsym(library, kind.symbol));
  if (get == nullptr) throw Error("{} is not a plugin for {}: {}", path, kind.name, LoaderError());
  const uint32_t* const table = get();
  if (table == nullptr || table[0] != kind.version || table[1] != kind.bytes) {
    throw Error("the {} plugin {} belongs to a different version of trireme; {}", kind.name, path,
                kind.how_to_get_one());
  }
  return table;
}

std::string ProgramFile() {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/exe", none).string();
}

std::string ProgramFolder() { return std::filesystem::path(ProgramFile()).parent_path().string(); }

std::vector<std::string> PluginFolders() {
  const std::filesystem::path folder = ProgramFolder();
  return {folder.string(), (folder.parent_path() / "lib/trireme").string()};
}

}  // namespace trireme
