#include "data/bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/error.h"

namespace trireme {
namespace {

// The most that deflate can pack one byte into (zlib's documentation).
constexpr int64_t kBestRatio = 1032;

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) throw Error("cannot open {}: {}", path, std::strerror(errno));
  }
  ~Descriptor() { close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

class Inflater {
 public:
  explicit Inflater(std::span<const uint8_t> packed) {
    stream_.next_in = const_cast<Bytef*>(packed.data());
    left_ = packed.size();
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw Error("zlib: out of memory");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  size_t left() const { return left_ + stream_.avail_in; }
  bool Restart() { return inflateReset(&stream_) == Z_OK; }

  // Returns zlib's verdict; `written` grows. zlib counts in 32 bits, so both sides come in parts.
  int Step(std::span<uint8_t> out, size_t& written) {
    if (stream_.avail_in == 0) {
      const size_t part = std::min<size_t>(left_, 1u << 30);
      stream_.avail_in = static_cast<uInt>(part);
      left_ -= part;
    }
    const size_t part = std::min<size_t>(out.size(), 1u << 30);
    stream_.next_out = out.data();
    stream_.avail_out = static_cast<uInt>(part);
    const int verdict = inflate(&stream_, Z_NO_FLUSH);
    written += part - stream_.avail_out;
    return verdict;
  }

 private:
  z_stream stream_{};
  size_t left_ = 0;  // not yet handed to zlib
};

[[noreturn]] void ThrowTooLarge(const std::string& path, int64_t max_bytes) {
  throw Error("{}: larger than {} bytes, half of this machine's memory", path, max_bytes);
}

bool IsGzip(std::span<const uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

// A gzip file ends with its unpacked size modulo 2^32: a hint, not to be trusted.
size_t GuessSize(std::span<const uint8_t> packed, int64_t max_bytes) {
  if (packed.size() < 18) return 64;
  const std::span<const uint8_t> end = packed.last(4);
  const int64_t said =
      int64_t{end[0]} | int64_t{end[1]} << 8 | int64_t{end[2]} << 16 | int64_t{end[3]} << 24;
  const int64_t possible = kBestRatio * static_cast<int64_t>(packed.size());
  return static_cast<size_t>(std::max<int64_t>(64, std::min({said, possible, max_bytes})));
}

std::vector<uint8_t> ReadRaw(const std::string& path, int64_t max_bytes) {
  const Descriptor file(path);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) throw Error("{}: {}", path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) throw Error("{}: is a folder; expected a file", path);
  if (status.st_size > max_bytes) ThrowTooLarge(path, max_bytes);
  std::vector<uint8_t> bytes(static_cast<size_t>(status.st_size) + 1);  // one more to see the end
  size_t size = 0;
  while (true) {
    const ssize_t got = read(file.get(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error("{}: {} at byte {}", path, std::strerror(errno), size);
    if (got == 0) break;
    size += static_cast<size_t>(got);
    if (static_cast<int64_t>(size) > max_bytes) ThrowTooLarge(path, max_bytes);
    if (size == bytes.size()) bytes.resize(std::max<size_t>(4096, 2 * size));
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

std::vector<uint8_t> Gunzip(std::span<const uint8_t> packed, const std::string& path,
                            int64_t max_bytes) {
  std::vector<uint8_t> bytes(GuessSize(packed, max_bytes));
  size_t size = 0;
  Inflater inflater(packed);
  while (true) {
    if (size == bytes.size()) {
      if (static_cast<int64_t>(size) >= max_bytes + 1) ThrowTooLarge(path, max_bytes);
      bytes.resize(std::min<size_t>(2 * size, static_cast<size_t>(max_bytes) + 1));
    }
    const int verdict = inflater.Step(std::span(bytes).subspan(size), size);
    const size_t place = packed.size() - inflater.left();
    if (verdict == Z_STREAM_END) {
      if (!IsGzip(packed.subspan(place))) break;  // zeros or rubbish may follow, as gzip allows
      if (inflater.Restart()) continue;
    }
    if (verdict == Z_OK) continue;
    if (verdict == Z_BUF_ERROR && inflater.left() == 0) {
      throw Error("{}: gzip data ends too early, at byte {}", path, place);
    }
    if (verdict != Z_BUF_ERROR) {
      throw Error("{}: broken gzip data before byte {}", path, place);
    }
  }
  if (static_cast<int64_t>(size) > max_bytes) ThrowTooLarge(path, max_bytes);
  bytes.resize(size);
  return bytes;
}

int64_t HalfOfMemory(int64_t pages, int64_t page_bytes) {
  if (pages <= 0 || page_bytes <= 0) return std::numeric_limits<int64_t>::max() / 2;
  return pages * page_bytes / 2;
}

std::vector<uint8_t> ReadBytes(const std::string& path) {
  const int64_t max_bytes = HalfOfMemory(sysconf(_SC_PHYS_PAGES), sysconf(_SC_PAGESIZE));
  std::vector<uint8_t> bytes = ReadRaw(path, max_bytes);
  if (bytes.empty()) throw Error("{}: the file is empty", path);
  if (!IsGzip(bytes)) return bytes;
  bytes = Gunzip(bytes, path, max_bytes);
  if (bytes.empty()) throw Error("{}: the file is empty once unpacked", path);
  return bytes;
}

std::string FindFile(const std::string& folder, std::span<const std::string> names) {
  for (const std::string& name : names) {
    for (const char* ending : {"", ".gz"}) {
      const std::string path = folder + "/" + name + ending;
      std::error_code ignored;
      if (std::filesystem::exists(path, ignored)) return path;
    }
  }
  return "";
}

void RequireFolder(const std::string& path, const std::string& what) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw Error("{}: there is no folder {}", what, path);
  }
  if (error) throw Error("{}: {}: {}", what, path, error.message());
  if (status.type() != std::filesystem::file_type::directory) {
    throw Error("{}: {} is a file; expected a folder", what, path);
  }
}

}  // namespace trireme
