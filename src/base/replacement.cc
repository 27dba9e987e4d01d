// Replacement: where a new version of a file is written, and how it takes the old one's place.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace trireme {
namespace {

struct Target {
  std::string path;
  bool into = false;  // written into, not replaced
};

// Where links lead, also to a file that is not there yet. Links of /proc stand for open files: what
// they read as need not be a name.
Target FindTarget(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel
  struct stat found;
  if (stat(path.c_str(), &found) == 0) {
    if (S_ISDIR(found.st_mode)) throw Error("{}: is a folder; expected a file", path);
    if (!S_ISREG(found.st_mode)) return {path, true};
  }
  std::filesystem::path name(path);
  for (int links = 0; links < kMostLinks; ++links) {
    std::error_code error;
    const auto next = std::filesystem::read_symlink(name, error);
    if (error) return {name.string()};
    const auto folder = name.has_parent_path() ? name.parent_path() : ".";
    if (std::filesystem::canonical(folder, error).string().starts_with("/proc/")) {
      return {path, true};
    }
    name = folder / next;  // next alone if it begins with /
  }
  throw Error("{}: cannot open for writing: {}", path,
              std::make_error_code(std::errc::too_many_symbolic_link_levels).message());
}

// A writer that lives holds a lock on what it writes (OutputFile::Claim).
void RemoveAbandoned(const std::string& target) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(target).parent_path();
  std::vector<std::string> unfinished;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder.empty() ? "." : folder, error)) {
    if (IsBeside(entry.path(), target)) unfinished.push_back(entry.path());
  }
  for (const std::string& path : unfinished) {
    const int fd = open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) continue;  // a folder, or another user's: no concern of this file
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlink(path.c_str());
    close(fd);
  }
}

}  // namespace

Replacement::Replacement(const std::string& path) {
  const Target target = FindTarget(path);
  target_ = target.path;
  if (target.into) {
    file_.emplace(target_, OutputFile::Start::kInto);
    return;
  }
  RemoveAbandoned(target_);
  do {
    beside_ = NameBeside(target_);
    file_.emplace(beside_);
  } while (!file_->Claim());
}

Replacement::~Replacement() {
  if (!beside_.empty()) unlink(beside_.c_str());
}

void Replacement::Commit() {
  if (!beside_.empty()) {
    file_->Sync();
    RenameDurably(beside_, target_);  // before the lock goes
    beside_.clear();
  }
  file_->Close();
}

void Replacement::Check(const std::string& path) {
  const Target target = FindTarget(path);
  if (!target.into) {
    Replacement begun(target.path);
  } else if (access(path.c_str(), W_OK) != 0) {  // opening a pipe would be noticed at its other end
    throw Error("{}: cannot open for writing: {}", path, std::generic_category().message(errno));
  }
}

void ReplaceFile(const std::string& path, std::string_view content) {
  Replacement replacement(path);
  replacement.file().Write(content);
  replacement.Commit();
}

}  // namespace trireme
