#include "transport/mpi/built_in.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace trireme {
namespace {

bool WriteBytes(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(size_t(n));
  }
  return true;
}

// Where a file may be written and executed; some are mounted noexec.
std::vector<std::string> PlacesForFiles() {
  std::vector<std::string> folders;
  for (const char* name : {"TMPDIR", "XDG_RUNTIME_DIR"}) {
    const char* folder = std::getenv(name);
    if (folder != nullptr && folder[0] == '/') folders.emplace_back(folder);
  }
  for (const char* folder : {"/tmp", "/dev/shm", "/var/tmp", "."}) folders.emplace_back(folder);
  return folders;
}

}  // namespace

PluginFile::PluginFile(std::string_view bytes, const std::string& name)
    : bytes_(bytes), name_(name) {
  memory_ = static_cast<int>(syscall(SYS_memfd_create, name.c_str(), 1u /* MFD_CLOEXEC */));
  path_ = fmt::format("/proc/self/fd/{}", memory_);
  const bool held = memory_ >= 0 && WriteBytes(memory_, bytes_) && access(path_.c_str(), R_OK) == 0;
  if (!held && !Move()) throw Error("no place for the MPI plugin {}:{}", name_, problems_);
}

PluginFile::~PluginFile() {
  if (memory_ >= 0) {
    close(memory_);
  } else if (!path_.empty()) {
    unlink(path_.c_str());
  }
}

bool PluginFile::Move() {
  if (memory_ >= 0) {
    close(memory_);
    memory_ = -1;
  } else if (next_folder_ > 0) {
    unlink(path_.c_str());
  }
  path_.clear();
  const std::vector<std::string> folders = PlacesForFiles();
  while (next_folder_ < folders.size()) {
    if (WriteTo(folders[next_folder_++])) return true;
  }
  return false;
}

bool PluginFile::WriteTo(const std::string& folder) {
  std::string path = fmt::format("{}/{}-XXXXXX", folder, name_);
  const int file = mkstemp(path.data());
  if (file < 0) {
    problems_ += fmt::format(" {}: {};", folder, std::strerror(errno));
    return false;
  }
  const bool whole = WriteBytes(file, bytes_);
  if (!whole) problems_ += fmt::format(" {}: {};", folder, std::strerror(errno));
  close(file);
  path_ = path;
  if (!whole) {
    unlink(path_.c_str());
    path_.clear();
  }
  return whole;
}

}  // namespace trireme
