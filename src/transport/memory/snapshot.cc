#include "transport/memory/snapshot.h"

#include <algorithm>
#include <cstring>

#include "base/files.h"
#include "base/sha256.h"

namespace trireme {
namespace {

constexpr char kSnapshotMagic[8] = {'t', 'r', 'i', 's', 'n', 'a', 'p', '\n'};
constexpr uint32_t kSnapshotFormat = 1;
constexpr size_t kDigest = 64;  // hexadecimal

struct SnapshotHead {
  char magic[8] = {};
  uint32_t format = kSnapshotFormat, regions = 0;
};

class SnapshotReader {
 public:
  explicit SnapshotReader(const std::string& path) : file_(path) {
    if (file_.size() < sizeof(SnapshotHead) + kDigest) Damaged("it is too short");
    end_ = file_.size() - kDigest;
  }
  void Read(void* into, uint64_t bytes) {
    if (bytes > end_ - at_) Damaged("it is too short");
    file_.ReadAt(at_, into, bytes);
    digest_.Add(into, bytes);
    at_ += bytes;
  }
  uint64_t left() const { return end_ - at_; }
  void Finish() {
    if (at_ != end_) Damaged("it is too long");
    std::string digest(kDigest, '\0');
    file_.ReadAt(end_, digest.data(), kDigest);
    if (digest != digest_.Hex()) Damaged("its digest is different");
  }
  [[noreturn]] void Damaged(std::string_view why) const {
    throw Error(
        "{} is not a snapshot of a memory box, or was changed: {}; remove it to begin empty",
        file_.path(), why);
  }

 private:
  const InputFile file_;
  Sha256 digest_;
  uint64_t at_ = 0, end_ = 0;
};

}  // namespace

void WriteSnapshot(MemoryStore& store, const std::string& path) {
  Replacement replacement(path);
  OutputFile& file = replacement.file();
  Sha256 digest;
  const auto write = [&](const void* from, size_t bytes) {
    digest.Add(from, bytes);
    file.Write(from, bytes);
  };
  SnapshotHead head;
  std::memcpy(head.magic, kSnapshotMagic, sizeof(head.magic));
  head.regions = store.CountRegions();  // regions are never removed, and the first so many stay
  write(&head, sizeof(head));
  RegionCopy copy;
  for (uint32_t r = 0; r < head.regions; ++r) {
    store.CopyRegion(r, copy);
    write(&copy.head, sizeof(copy.head));
    write(copy.values.data(), copy.values.size());
    write(copy.notes.data(), copy.notes.size() * sizeof(RingEntry));
  }
  const std::string hex = digest.Hex();
  file.Write(hex);
  replacement.Commit();
}

bool ReadSnapshot(MemoryStore& store, const std::string& path) {
  if (!Exists(path)) return false;
  SnapshotReader reader(path);
  SnapshotHead head;
  reader.Read(&head, sizeof(head));
  if (std::memcmp(head.magic, kSnapshotMagic, sizeof(head.magic)) != 0) {
    reader.Damaged("the magic is different");
  }
  if (head.format != kSnapshotFormat || head.regions > kMostRegions) {
    reader.Damaged("it has another format");
  }
  RegionCopy copy;
  for (uint32_t r = 0; r < head.regions; ++r) {
    reader.Read(&copy.head, sizeof(copy.head));
    const bool known = copy.head.type == RegionType::kF32 || copy.head.type == RegionType::kI64;
    if (!known || copy.head.notes > std::min(copy.head.version, kKeptNotes) ||
        copy.head.length > reader.left() / ValueBytes(copy.head.type)) {
      reader.Damaged("a region cannot be");
    }
    copy.values.resize(copy.head.length * ValueBytes(copy.head.type));
    reader.Read(copy.values.data(), copy.values.size());
    copy.notes.resize(copy.head.notes);
    reader.Read(copy.notes.data(), copy.notes.size() * sizeof(RingEntry));
    store.RestoreRegion(copy);
  }
  reader.Finish();
  return true;
}

}  // namespace trireme
