#include "base/proc_file.h"

#include <fstream>

namespace trireme {

std::optional<std::string> ReadProcFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(64 << 10, '\0');
  if (!file) return std::nullopt;
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (!file && !file.eof())) return std::nullopt;
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

}  // namespace trireme
