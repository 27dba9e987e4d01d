#include "engine/cuda/opened.h"

#include <dlfcn.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

#ifndef TRIREME_CUDA_LIBRARY_FOLDERS
#define TRIREME_CUDA_LIBRARY_FOLDERS ""  // where the libraries were found at build time
#endif

namespace trireme::cuda {

// The loader's own search comes first, so that LD_LIBRARY_PATH decides.
OpenedLibrary::OpenedLibrary(const LibraryFile& library) : library_(library) {
  std::vector<std::string> paths = {library.file};
  std::string_view folders = TRIREME_CUDA_LIBRARY_FOLDERS;
  while (!folders.empty()) {
    const std::string_view folder = folders.substr(0, folders.find(':'));
    paths.push_back(fmt::format("{}/{}", folder, library.file));
    folders.remove_prefix(std::min(folders.size(), folder.size() + 1));
  }
  std::string why;
  for (const std::string& path : paths) {
    opened_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened_) return;
    if (why.empty()) why = dlerror();
  }
  throw Error(
      "{} needs {}, which could not be opened ({}): {}, or name its folder in "
      "LD_LIBRARY_PATH",
      library.user, library.name, why, library.install);
}

void* OpenedLibrary::Find(const char* name) const {
  if (void* const found = dlsym(opened_, name)) return found;
  throw Error("{} needs a newer {}: {} has no {}; {}", library_.user, library_.name, library_.file,
              name, library_.install);
}

}  // namespace trireme::cuda
