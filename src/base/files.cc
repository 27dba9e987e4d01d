#include "base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr char kUnfinished[] = ".writing-";

[[noreturn]] void Fail(const std::string& path, const char* verb, int code = errno) {
  throw Error("{}: cannot {}: {}", path, verb, std::generic_category().message(code));
}

std::string TemporaryName() {
  const char* base = std::getenv("TMPDIR");
  return std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/trireme-XXXXXX";
}

template <class Call>
auto Retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

int Open(const std::string& path, int flags, const char* verb) {
  const int fd = Retry([&] { return open(path.c_str(), flags | O_CLOEXEC, 0666); });
  if (fd < 0) Fail(path, verb);
  return fd;
}

struct stat Stat(int fd, const std::string& path) {
  struct stat found;
  if (fstat(fd, &found) != 0) Fail(path, "read");
  return found;
}

void WriteAll(int fd, const std::string& path, const void* from, size_t bytes) {
  const char* next = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t done = Retry([&] { return write(fd, next, bytes); });
    if (done < 0) Fail(path, "write");
    next += done;
    bytes -= static_cast<size_t>(done);
  }
}

void ReadAllAt(int fd, const std::string& path, uint64_t offset, void* into, size_t bytes) {
  char* next = static_cast<char*>(into);
  while (bytes > 0) {
    const ssize_t done = Retry([&] { return pread(fd, next, bytes, static_cast<off_t>(offset)); });
    if (done < 0) Fail(path, "read");
    if (done == 0) throw Error("{}: ends at byte {}; expected {} more bytes", path, offset, bytes);
    next += done;
    offset += static_cast<uint64_t>(done);
    bytes -= static_cast<size_t>(done);
  }
}

std::string FolderOf(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

std::string ReadFile(const std::string& path, size_t max_bytes) {
  const int fd = Open(path, O_RDONLY, "open");
  std::string content;
  try {
    const struct stat found = Stat(fd, path);
    if (S_ISDIR(found.st_mode)) throw Error("{}: is a folder; expected a file", path);
    const auto too_large = [&](uint64_t bytes) {
      return Error("{}: has {} bytes; the limit is {}", path, bytes, max_bytes);
    };
    const uint64_t size = static_cast<uint64_t>(found.st_size);
    if (S_ISREG(found.st_mode) && size > max_bytes) throw too_large(size);
    // The size is only a hint: pipes and /proc say 0, and a file may grow meanwhile.
    size_t used = 0;
    content.resize(std::min<uint64_t>(size, max_bytes) + 1);
    for (;;) {
      const ssize_t done =
          Retry([&] { return read(fd, content.data() + used, content.size() - used); });
      if (done < 0) Fail(path, "read");
      if (done == 0) break;
      used += static_cast<size_t>(done);
      if (used > max_bytes) throw too_large(used);
      if (used == content.size()) content.resize(std::min(2 * used + 4096, max_bytes + 1));
    }
    content.resize(used);
  } catch (...) {
    close(fd);
    throw;
  }
  close(fd);
  return content;
}

void MakeDirectories(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  std::error_code ignored;
  if (error && fs::is_symlink(path, ignored) && !fs::exists(path, ignored)) {
    throw Error("{}: is a dangling link to {}", path, fs::read_symlink(path, ignored).string());
  }
  if (error) Fail(path, "create the folder", error.value());
  if (!fs::is_directory(path, error)) throw Error("{}: is a file; expected a folder", path);
}

void SyncDirectory(const std::string& path) {
  const int fd = Open(path, O_RDONLY | O_DIRECTORY, "open the folder");
  const int result = Retry([&] { return fsync(fd); });
  const int code = errno;
  close(fd);
  // Some file systems have nothing to sync in a folder and say so with EINVAL.
  if (result != 0 && code != EINVAL) Fail(path, "sync the folder", code);
}

void RenameDurably(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) Fail(to, "put the new version in place");
  SyncDirectory(FolderOf(to));
}

bool Exists(const std::string& path) {
  struct stat found;
  return lstat(path.c_str(), &found) == 0;
}

std::string NameBeside(const std::string& path) {
  std::random_device random;
  const uint64_t mark = (uint64_t{random()} << 32) | random();
  const fs::path whole(path);
  const std::string name =
      fmt::format(".{}{}{:016x}", whole.filename().string(), kUnfinished, mark);
  return (whole.parent_path() / name).string();
}

bool IsBeside(const std::string& name, const std::string& path) {
  const std::string begin = fmt::format(".{}{}", fs::path(path).filename().string(), kUnfinished);
  return fs::path(name).filename().string().starts_with(begin);
}

void RemoveLeftovers(const std::string& directory) {
  std::error_code error;
  std::vector<fs::path> unfinished;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') && name.find(kUnfinished) != std::string::npos) {
      unfinished.push_back(entry.path());
    }
  }
  if (error) Fail(directory, "list the folder", error.value());
  for (const auto& path : unfinished) {
    fs::remove_all(path, error);
    if (error) Fail(path.string(), "remove", error.value());
  }
}

void RemoveTree(const std::string& path) {
  const std::string beside = NameBeside(path);
  if (rename(path.c_str(), beside.c_str()) != 0) {
    if (errno == ENOENT) return;
    Fail(path, "remove");
  }
  std::error_code error;
  fs::remove_all(beside, error);
  if (error) Fail(beside, "remove", error.value());
}

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  fd_ = Open(path_, O_RDONLY | O_NONBLOCK, "open");  // a pipe must not make us wait
  struct stat found {};
  if (fstat(fd_, &found) != 0 || !S_ISREG(found.st_mode)) {
    close(fd_);
    throw Error("{}: is {}; expected a file", path_,
                S_ISDIR(found.st_mode) ? "a folder" : "not a regular file");
  }
  size_ = static_cast<uint64_t>(found.st_size);
}

InputFile::~InputFile() {
  if (fd_ >= 0) close(fd_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

void InputFile::ReadAt(uint64_t offset, void* into, size_t bytes) const {
  ReadAllAt(fd_, path_, offset, into, bytes);
}

OutputFile::OutputFile(std::string path, Start start) : path_(std::move(path)) {
  const int flags = start == Start::kEmpty   ? O_RDWR | O_CREAT | O_TRUNC
                    : start == Start::kAtEnd ? O_RDWR | O_CREAT | O_APPEND
                                             : O_WRONLY;
  fd_ = Open(path_, flags, "open for writing");
  struct stat found;
  if (start != Start::kInto || fstat(fd_, &found) != 0 || !S_ISREG(found.st_mode)) return;
  fcntl(fd_, F_SETFL, O_APPEND);  // a file that somebody else has open and goes on with
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

void OutputFile::Write(const void* from, size_t bytes) { WriteAll(fd_, path_, from, bytes); }

void OutputFile::WriteAt(uint64_t offset, const void* from, size_t bytes) {
  const char* next = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t done =
        Retry([&] { return pwrite(fd_, next, bytes, static_cast<off_t>(offset)); });
    if (done < 0) Fail(path_, "write");
    next += done;
    offset += static_cast<uint64_t>(done);
    bytes -= static_cast<size_t>(done);
  }
}

void OutputFile::ReadAt(uint64_t offset, void* into, size_t bytes) const {
  ReadAllAt(fd_, path_, offset, into, bytes);
}

bool OutputFile::CanWriteAt() const {
  return lseek(fd_, 0, SEEK_CUR) >= 0 && (fcntl(fd_, F_GETFL) & O_APPEND) == 0;
}

void OutputFile::Sync() {
  if (Retry([&] { return fsync(fd_); }) != 0) Fail(path_, "sync");
}

void OutputFile::Close() {
  if (close(std::exchange(fd_, -1)) != 0 && errno != EINTR) Fail(path_, "close");
}

bool OutputFile::Claim() {
  flock(fd_, LOCK_EX | LOCK_NB);  // where there are no locks, nobody else gets one either
  return Stat(fd_, path_).st_nlink > 0;
}

NamelessFile::NamelessFile(std::string_view content) {
  std::string name = TemporaryName();
  fd_ = mkostemp(name.data(), O_CLOEXEC);
  if (fd_ < 0) Fail(name, "create a temporary file");
  unlink(name.c_str());
  try {
    WriteAll(fd_, name, content.data(), content.size());
  } catch (...) {
    close(fd_);
    throw;
  }
}

NamelessFile::~NamelessFile() { close(fd_); }

std::string NamelessFile::path() const { return fmt::format("/proc/self/fd/{}", fd_); }

TemporaryDirectory::TemporaryDirectory() : path_(TemporaryName()) {
  if (mkdtemp(path_.data()) == nullptr) Fail(path_, "create a temporary folder");
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace trireme
