#include "data/pack.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "image/raw_picture.h"

namespace trireme {
namespace {

// The whole file, readable; the mapping outlives the descriptor.
std::span<const uint8_t> Map(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw Error("cannot open {}: {}", path, std::strerror(errno));
  struct stat status {};
  std::string problem;
  void* memory = nullptr;
  if (fstat(fd, &status) != 0) {
    problem = std::strerror(errno);
  } else if (!S_ISREG(status.st_mode)) {
    problem = "is not a file";
  } else if (status.st_size < static_cast<int64_t>(PackHead::kBytes)) {
    problem = "is not a pack written by trireme data pack";
  } else {
    memory = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) problem = std::strerror(errno);
  }
  close(fd);
  if (!problem.empty()) throw Error("{}: {}", path, problem);
  return {static_cast<const uint8_t*>(memory), static_cast<size_t>(status.st_size)};
}

// Texts with their length before them, one after the other.
class Texts {
 public:
  explicit Texts(std::span<const uint8_t> bytes) : rest_(bytes) {}

  bool Next(std::string_view& text) {
    if (rest_.size() < 4) return false;
    const size_t length = rest_[0] | rest_[1] << 8 | rest_[2] << 16 | size_t{rest_[3]} << 24;
    if (length > rest_.size() - 4) return false;
    text = {reinterpret_cast<const char*>(rest_.data() + 4), length};
    rest_ = rest_.subspan(4 + length);
    return true;
  }
  size_t left() const { return rest_.size(); }

 private:
  std::span<const uint8_t> rest_;
};

// Pages that are not in memory come now, and not in the middle of decoding.
void Touch(std::span<const uint8_t> bytes) {
  constexpr size_t kPage = 4096;
  uint8_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += kPage) sum = uint8_t(sum + bytes[i]);
  static_cast<void>(*static_cast<volatile uint8_t*>(&sum));
}

// Pictures of a pack whose checksum was found right since it was opened. Thread-safe.
class Known {
 public:
  explicit Known(int64_t size) : known_(static_cast<size_t>(size)) {}
  bool Is(int64_t index) { return at(index).load(std::memory_order_relaxed); }
  void Add(int64_t index) { at(index).store(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool>& at(int64_t index) { return known_[static_cast<size_t>(index)]; }
  std::vector<std::atomic<bool>> known_;
};

class PackReader : public PictureReader {
 public:
  PackReader(const Pack& pack, int64_t first, Known& known)
      : pack_(pack), first_(first), known_(known) {}
  void Fetch(int64_t index) override {
    index_ = first_ + index;
    if (known_.Is(index)) return Touch(pack_.picture(index_));
    const std::string wrong = pack_.CheckBytes(index_);
    if (!wrong.empty()) throw Error("{}; trireme data verify lists all damaged images", wrong);
    known_.Add(index);
  }
  Decoder& Open() override {
    picture_ = pack_.Open(index_);
    return *picture_;
  }

 private:
  const Pack& pack_;
  const int64_t first_;
  Known& known_;
  int64_t index_ = 0;
  std::unique_ptr<Decoder> picture_;
};

class PackSource : public PictureSource {
 public:
  PackSource(const DataOptions& options, std::shared_ptr<const Pack> pack, int64_t first,
             int64_t size, std::vector<int32_t> labels)
      : PictureSource(options, size),
        pack_(std::move(pack)),
        first_(first),
        labels_(std::move(labels)),
        known_(size) {}

  int32_t label(int64_t index) const override {
    return labels_[static_cast<size_t>(pack_->entry(first_ + index).label)];
  }
  std::string NameOf(int64_t index) const override { return pack_->name(first_ + index); }
  std::unique_ptr<PictureReader> NewReader() const override {
    return std::make_unique<PackReader>(*pack_, first_, known_);
  }

 private:
  const std::shared_ptr<const Pack> pack_;
  const int64_t first_;
  const std::vector<int32_t> labels_;  // of the pack's classes
  mutable Known known_;
};

}  // namespace

Pack::Pack(const std::string& path) : path_(path), file_(Map(path)) {
  try {
    head_ = PackHead::Read(file_, path_);
    ReadIndex();
  } catch (...) {
    munmap(const_cast<uint8_t*>(file_.data()), file_.size());
    throw;
  }
}

Pack::~Pack() { munmap(const_cast<uint8_t*>(file_.data()), file_.size()); }

void Pack::ReadIndex() {
  const std::span<const uint8_t> index = file_.subspan(head_.index_begin);
  if (Crc(index) != head_.index_crc) throw Error("{}: damaged index", path_);
  const auto pictures = static_cast<int64_t>(head_.pictures());
  for (int64_t i = 0; i < pictures; ++i) {
    const PackEntry e = entry(i);
    const bool pixels = head_.kind == PackKind::kPixels;
    const uint64_t expected = uint64_t{3} * e.width * e.height;
    if (e.begin < PackHead::kBytes || e.begin > head_.index_begin ||
        e.bytes > head_.index_begin - e.begin || e.label < 0 ||
        static_cast<uint32_t>(e.label) >= head_.classes) {
      throw Error("{}: image {} of {} is outside the data or has no class", path_, i, pictures);
    }
    if (pixels &&
        (e.width > kMaxPixels || e.height > kMaxPixels || e.bytes != expected || e.bytes == 0)) {
      throw Error("{}: image {} cannot have {} x {} pixels in {} bytes", path_, i, e.width,
                  e.height, e.bytes);
    }
  }
  Texts texts(index.subspan(head_.pictures() * PackEntry::kBytes));
  std::string_view text;
  for (uint32_t i = 0; i < head_.classes; ++i) {
    if (!texts.Next(text)) throw Error("{}: damaged class names", path_);
    classes_.emplace_back(text);
  }
  names_begin_ = file_.size() - texts.left();
}

PackEntry Pack::entry(int64_t index) const {
  return PackEntry::Read(file_.data() + head_.index_begin +
                         static_cast<size_t>(index) * PackEntry::kBytes);
}

std::span<const uint8_t> Pack::picture(int64_t index) const {
  const PackEntry e = entry(index);
  return file_.subspan(e.begin, e.bytes);
}

std::string Pack::name(int64_t index) const {
  Texts texts(file_.subspan(names_begin_));
  std::string_view text;
  for (int64_t i = 0; i <= index; ++i) {
    if (!texts.Next(text)) return "";
  }
  return std::string(text);
}

std::string Pack::Called(int64_t index) const {
  return fmt::format("{}: image {} ({})", path_, index, name(index));
}

std::unique_ptr<Decoder> Pack::Open(int64_t index) const {
  if (head_.kind == PackKind::kPixels) {
    const PackEntry e = entry(index);
    return std::make_unique<RawPicture>(
        file_.data() + e.begin, PictureSize{static_cast<int>(e.width), static_cast<int>(e.height)});
  }
  return OpenPicture(picture(index), fmt::format("{}: image {}", path_, index));
}

std::string Pack::CheckBytes(int64_t index) const {
  if (Crc(picture(index)) == entry(index).crc) return "";
  return Called(index) + ": wrong checksum";
}

std::string Pack::Check(int64_t index) const {
  if (const std::string wrong = CheckBytes(index); !wrong.empty()) return wrong;
  try {
    Open(index)->Verify();
  } catch (const Error& error) {
    return fmt::format("{} ({})", error.what(), name(index));
  }
  return "";
}

DataSet OpenPack(const std::string& path, const DataOptions& options,
                 std::span<const std::string> classes) {
  if (options.on_error == "skip" || !options.train_folder.empty() ||
      !options.validation_folder.empty() || !options.test_folder.empty()) {
    throw UsageError(
        "data.on_error, data.train_folder, data.validation_folder and data.test_folder apply to "
        "trireme data pack and images:DIR, not to pack:FILE; a pack is already checked and split");
  }
  const auto pack = std::make_shared<const Pack>(path);
  DataSet data;
  data.classes.assign(classes.begin(), classes.end());
  if (data.classes.empty()) data.classes = pack->classes();
  std::vector<int32_t> labels;
  for (const std::string& name : pack->classes()) {
    const auto at = std::find(data.classes.begin(), data.classes.end(), name);
    if (at == data.classes.end()) {
      throw Error("{}: class {} is not one of the {} known classes", path, name,
                  data.classes.size());
    }
    labels.push_back(static_cast<int32_t>(at - data.classes.begin()));
  }
  int64_t first = 0;
  const auto open = [&](uint64_t pictures) -> std::unique_ptr<Source> {
    if (pictures == 0) return nullptr;
    const auto size = static_cast<int64_t>(pictures);
    return std::make_unique<PackSource>(options, pack, std::exchange(first, first + size), size,
                                        labels);
  };
  data.train = open(pack->head().train);
  data.validation = open(pack->head().validation);
  data.test = open(pack->head().test);
  data.shape = data.train->shape();
  return data;
}

}  // namespace trireme
