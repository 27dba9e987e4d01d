#include "transport/memory/image.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <random>

#include "base/proc_file.h"
#include "base/text.h"
#include "transport/memory/extents.h"

namespace trireme {
namespace {

constexpr char kBoxMagic[8] = {'t', 'r', 'i', 'b', 'o', 'x', '\r', '\n'};
constexpr uint32_t kBoxFormat = 2;
constexpr uint64_t kLeastArena = 1 << 16;  // of an arena

uint64_t ArenaOf(uint64_t bytes) { return RoundUpToPage(sizeof(BoxHeader) + bytes / kPiece); }

// The field of /proc/PID/stat behind the name, which may hold anything; nothing: no such process.
uint64_t BornAt(uint32_t pid) {
  const auto stat = ReadProcFile("/proc/" + std::to_string(pid) + "/stat");
  if (!stat) return 0;
  const size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos) return 0;
  const std::vector<std::string> fields = Split(std::string_view(*stat).substr(name_end + 1), ' ');
  constexpr size_t kStartTime = 20;  // field 22, counted from the one after the name
  return fields.size() > kStartTime ? ParseNumber<uint64_t>(fields[kStartTime]).value_or(0) : 0;
}

std::string BootId() {
  return std::string(Trim(ReadProcFile("/proc/sys/kernel/random/boot_id").value_or("")));
}

int OpenOrThrow(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0) throw Error("{}: cannot open it: {}", path, std::strerror(errno));
  return fd;
}

class FdGuard {
 public:
  explicit FdGuard(int fd) : fd_(fd) {}
  ~FdGuard() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

uint64_t SizeOf(int fd, const std::string& path) {
  struct stat facts {};
  if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    throw Error("{} is not a regular file; name a file for the box", path);
  }
  return uint64_t(facts.st_size);
}

[[noreturn]] void Damaged(const std::string& path, std::string_view what) {
  throw Error("{} is not a memory box's file, or was changed: {}", path, what);
}

// A header that fits the file's length, before it is mapped: pages beyond the end cannot be read.
void CheckHeader(int fd, const std::string& path, uint64_t size) {
  struct {
    char magic[8];
    uint32_t format, zero;
    uint64_t bytes, arena;
  } head{};
  static_assert(sizeof(head) == 32);
  if (size < sizeof(BoxHeader) || pread(fd, &head, sizeof(head), 0) != ssize_t(sizeof(head))) {
    Damaged(path, "it is too short");
  }
  if (std::memcmp(head.magic, kBoxMagic, sizeof(kBoxMagic)) != 0)
    Damaged(path, "the magic is different");
  if (head.format != kBoxFormat) {
    throw Error("{} has format {}, this program reads format {}; use the version that wrote it",
                path, head.format, kBoxFormat);
  }
  if (head.bytes != size) {
    Damaged(path, fmt::format("it has {} bytes instead of {}", size, head.bytes));
  }
  if (head.arena != ArenaOf(head.bytes)) Damaged(path, "its parts lie elsewhere");
}

// What is in the file was written by processes of this machine since it was started, or a box had
// closed it.
bool IsOfThisLife(int fd) {
  char boot[sizeof(BoxHeader::boot)] = {};
  uint32_t clean = 0;
  if (pread(fd, boot, sizeof(boot), offsetof(BoxHeader, boot)) != ssize_t(sizeof(boot)) ||
      pread(fd, &clean, sizeof(clean), offsetof(BoxHeader, clean)) != ssize_t(sizeof(clean))) {
    return false;
  }
  boot[sizeof(boot) - 1] = '\0';
  return clean == 1 || BootId() == boot;
}

}  // namespace

uint64_t ImageBytes(uint64_t arena) {
  const uint64_t wanted = RoundUpToPage(std::max(arena, kLeastArena));
  uint64_t bytes = RoundUpToPage(sizeof(BoxHeader)) + wanted;
  while (bytes - ArenaOf(bytes) < wanted) bytes += kBoxPage;
  return bytes;
}

std::string_view NameOf(const RegionRecord& region) {
  return {region.name, strnlen(region.name, sizeof(region.name))};
}

MemoryImage::MemoryImage(std::string path, int fd, size_t bytes)
    : path_(std::move(path)), fd_(fd), bytes_(bytes) {
  const int kind = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind, fd, 0);
  if (memory == MAP_FAILED) {
    const int why = errno;
    if (fd >= 0) close(fd);
    throw Error("cannot map {} of memory for a box: {}", FormatBytes(double(bytes)),
                std::strerror(why));
  }
  base_ = static_cast<std::byte*>(memory);
}

MemoryImage::~MemoryImage() {
  munmap(base_, bytes_);
  if (fd_ >= 0) close(fd_);
}

void MemoryImage::Begin() {
  BoxHeader& head = header();
  head.format = kBoxFormat;
  head.bytes = bytes_;
  head.arena = ArenaOf(bytes_);
  head.touched = head.arena;
  head.incarnation = NewNumber();
  std::snprintf(head.boot, sizeof(head.boot), "%s", BootId().c_str());
  uint64_t magic = 0;  // last, and whole: who reads it believes the rest
  std::memcpy(&magic, kBoxMagic, sizeof(magic));
  std::atomic_ref(*reinterpret_cast<uint64_t*>(head.magic)).store(magic, std::memory_order_release);
}

std::shared_ptr<MemoryImage> MemoryImage::Anonymous(size_t bytes) {
  std::shared_ptr<MemoryImage> image(new MemoryImage("", -1, ImageBytes(bytes)));
  image->Begin();
  return image;
}

std::shared_ptr<MemoryImage> MemoryImage::File(const std::string& path, size_t bytes) {
  FdGuard fd(OpenOrThrow(path, O_RDWR | O_CREAT));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    throw Error("{}: another process serves it; stop that box, or name another file", path);
  }
  const uint64_t size = SizeOf(fd.get(), path), wanted = ImageBytes(bytes);
  // One that a killed process had only begun has no header, and no contents.
  char magic[8] = {};
  const bool begun = pread(fd.get(), magic, sizeof(magic), 0) == ssize_t(sizeof(magic)) &&
                     std::any_of(magic, magic + 8, [](char c) { return c != 0; });
  if (begun) {
    CheckHeader(fd.get(), path, size);
    if (size != wanted) {
      throw Error("{} is a box of {}, not of {}; give its size, or name another file", path,
                  FormatBytes(double(size)), FormatBytes(double(wanted)));
    }
  } else if (size > 0 && size != wanted) {
    Damaged(path, "it has no header");
  }
  const bool fresh = !begun || !IsOfThisLife(fd.get());
  if (fresh) {
    const uint64_t head = ArenaOf(wanted);
    // The rest is taken when it is given out: a full disk then refuses a region, and ends nobody.
    int error = ftruncate(fd.get(), 0) != 0 ? errno : 0;
    if (!error) error = posix_fallocate(fd.get(), 0, off_t(head));
    if (!error && ftruncate(fd.get(), off_t(wanted)) != 0) error = errno;
    if (error) {
      throw Error("{}: cannot make it {} long: {}", path, FormatBytes(double(wanted)),
                  std::strerror(error));
    }
  }
  std::shared_ptr<MemoryImage> image(new MemoryImage(path, fd.Release(), wanted));
  image->fresh_ = fresh;
  if (fresh) image->Begin();
  image->Validate();
  BoxHeader& head = image->header();
  std::snprintf(head.boot, sizeof(head.boot), "%s", BootId().c_str());
  head.clean.store(0);
  return image;
}

void MemoryImage::Close() {
  if (fd_ < 0 || msync(base_, bytes_, MS_SYNC) != 0) return;
  header().clean.store(1);
  msync(base_, kBoxPage, MS_SYNC);
}

std::shared_ptr<MemoryImage> MemoryImage::OpenFile(const std::string& path) {
  FdGuard fd(OpenOrThrow(path, O_RDWR));
  const uint64_t size = SizeOf(fd.get(), path);
  CheckHeader(fd.get(), path, size);
  return std::shared_ptr<MemoryImage>(new MemoryImage(path, fd.Release(), size));
}

std::atomic<uint8_t>* MemoryImage::added() const {
  return reinterpret_cast<std::atomic<uint8_t>*>(base_ + sizeof(BoxHeader));
}

RingEntry& MemoryImage::ring(const RegionRecord& region, uint64_t version) const {
  return reinterpret_cast<RingEntry*>(at(region.ring))[version % kKeptNotes];
}

void MemoryImage::Validate() const {
  const auto check = [&](bool good, std::string_view what) {
    if (!good) Damaged(path_.empty() ? "a box's memory" : path_, what);
  };
  const BoxHeader& head = header();
  const auto holds = [&](uint64_t place, uint64_t length) {
    return place >= head.arena && place % kBoxPage == 0 && place <= bytes_ &&
           length <= bytes_ - place;
  };
  check(head.incarnation != 0, "it has no incarnation");
  check(head.session_top.load() <= kMostSessions, "it has too many sessions");
  check(head.touched >= head.arena && head.touched <= bytes_, "the end of what is used is wrong");
  for (uint32_t r = 0; r < kMostRegions; ++r) {
    const RegionRecord& region = head.regions[r];
    const uint32_t used = region.used.load(std::memory_order_acquire);
    if (used == 0) continue;
    check(used == 1, fmt::format("region {} is neither used nor free", r));
    const std::string_view name = NameOf(region);
    check(!name.empty() && name.size() <= kMostRegionName, fmt::format("region {} has no name", r));
    check(region.type == RegionType::kF32 || region.type == RegionType::kI64,
          fmt::format("region {} has no type", r));
    check(region.capacity <= bytes_ && region.length <= region.capacity / ValueBytes(region.type),
          fmt::format("region {} is longer than its place", r));
    check(holds(region.data, region.capacity) && holds(region.ring, kKeptNotes * sizeof(RingEntry)),
          fmt::format("region {} lies outside", r));
  }
  for (uint32_t s = 0; s < kMostSessions; ++s) {
    const SessionRecord& session = head.sessions[s];
    const uint64_t client = session.client.load(std::memory_order_acquire);
    check(client == 0 || s < head.session_top.load(), "it has a session too many");
    // The next client begins with what is there.
    check(client != 0 || (session.slot_bytes == 0 && session.last == 0),
          fmt::format("session {} is free, but holds something", s));
    if (session.slot_bytes == 0) continue;
    check(holds(session.slot, session.slot_bytes), fmt::format("slot {} lies outside", s));
  }
  check(!Extents::Overlap(*this), "places overlap");
  const Journal& journal = head.journal;
  if (journal.running.load(std::memory_order_acquire) == 0) return;
  const Word& word = journal.word;
  check(journal.session < kMostSessions && word.region < kMostRegions && IsChange(word.kind) &&
            word.note_bytes <= kMostNote,
        "its journal names what is not there");
  const RegionRecord& region = head.regions[word.region];
  const SessionRecord& session = head.sessions[journal.session];
  check(region.used.load() == 1 && word.offset <= region.length &&
            word.length <= region.length - word.offset,
        "its journal leads beyond a region");
  const uint64_t size = ValueBytes(region.type);
  check(!BringsValues(word.kind) || word.length <= session.slot_bytes / size,
        "its journal leads beyond a slot");
  // Killed in the middle of a swap, one of both has its new place.
  const auto either = [](uint64_t is, uint64_t a, uint64_t b) { return is == a || is == b; };
  const bool fits = journal.swaps
                        ? word.kind == WordKind::kPut && session.slot_bytes == region.capacity &&
                              word.offset == 0 && word.length == region.length &&
                              holds(journal.new_data, region.capacity) &&
                              holds(journal.new_slot, region.capacity) &&
                              either(region.data, journal.new_data, journal.new_slot) &&
                              either(session.slot, journal.new_data, journal.new_slot)
                        : journal.new_data == region.data && journal.new_slot == session.slot;
  check(!BringsValues(word.kind) || fits, "its journal moves a region");
}

uint32_t ClaimSession(BoxHeader& header, uint64_t client) {
  for (uint32_t s = 0; s < kMostSessions; ++s) {
    // First: who looks for readers must not miss this one.
    uint32_t top = header.session_top.load();
    while (top <= s && !header.session_top.compare_exchange_weak(top, s + 1)) {
    }
    uint64_t free = 0;
    if (header.sessions[s].client.compare_exchange_strong(free, client)) return s;
  }
  return kMostSessions;
}

ProcessId OwnProcess() {
  const auto pid = uint32_t(getpid());
  return {pid, BornAt(pid)};
}

bool IsAlive(const ProcessId& process) {
  if (kill(pid_t(process.pid), 0) != 0 && errno == ESRCH) return false;
  const uint64_t born = BornAt(process.pid);
  return born == 0 ? kill(pid_t(process.pid), 0) == 0 || errno == EPERM : born == process.born;
}

uint64_t NewNumber() {
  std::random_device random;
  for (;;) {
    if (const uint64_t number = uint64_t{random()} << 32 | random()) return number;
  }
}

}  // namespace trireme
