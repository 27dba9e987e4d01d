#include "cli/glibc_wanted.h"

#include <link.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace trireme {
namespace {

// The list of versions that a loaded file needs of its libraries (ELF, DT_VERNEED).
struct Needs {
  uintptr_t base = 0;
  const char* names = nullptr;
  const ElfW(Verneed) * files = nullptr;
  size_t count = 0;

  // Loaders relocate some of these addresses in place and not others.
  template <class T>
  const T* At(uintptr_t address) const {
    return reinterpret_cast<const T*>(address < base ? base + address : address);
  }
};

// Called for the program first.
int FindNeeds(dl_phdr_info* info, size_t, void* found) {
  auto& needs = *static_cast<Needs*>(found);
  needs.base = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry =
        reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      const uintptr_t value = entry->d_un.d_ptr;
      if (entry->d_tag == DT_STRTAB) needs.names = needs.At<char>(value);
      if (entry->d_tag == DT_VERNEED) needs.files = needs.At<ElfW(Verneed)>(value);
      if (entry->d_tag == DT_VERNEEDNUM) needs.count = entry->d_un.d_val;
    }
  }
  return 1;  // not the libraries
}

template <class T>
const T* Behind(const void* at, size_t bytes) {
  return reinterpret_cast<const T*>(static_cast<const char*>(at) + bytes);
}

}  // namespace

std::string GlibcWanted() {
  Needs needs;
  dl_iterate_phdr(FindNeeds, &needs);
  constexpr std::string_view kPrefix = "GLIBC_";
  std::pair<int, int> newest = {0, 0};
  std::string text = "unknown";
  if (needs.names == nullptr) return text;
  const ElfW(Verneed)* file = needs.files;
  for (size_t i = 0; file != nullptr && i < needs.count; ++i) {
    const auto* version = Behind<ElfW(Vernaux)>(file, file->vn_aux);
    for (int j = 0; j < file->vn_cnt; ++j) {
      const std::string_view name = needs.names + version->vna_name;
      if (name.starts_with(kPrefix)) {
        const std::string number(name.substr(kPrefix.size()));
        const std::vector<std::string> parts = Split(number, '.');
        const auto major = ParseNumber<int>(parts[0]);
        const auto minor = ParseNumber<int>(parts.size() > 1 ? parts[1] : "0");
        if (major && minor && std::pair(*major, *minor) > newest) {
          newest = {*major, *minor};
          text = number;
        }
      }
      version = Behind<ElfW(Vernaux)>(version, version->vna_next);
    }
    file = Behind<ElfW(Verneed)>(file, file->vn_next);
  }
  return text;
}

}  // namespace trireme
