#include "data/pack_format.h"

#include <zlib.h>

#include <algorithm>

#include "base/error.h"

namespace trireme {
namespace {

template <class T>
void Put(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>(static_cast<uint64_t>(value) >> 8 * i & 0xff));
  }
}

class Cursor {
 public:
  explicit Cursor(const uint8_t* at) : at_(at) {}
  template <class T>
  void Get(T& value) {
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof(T); ++i) bits |= uint64_t{*at_++} << 8 * i;
    value = static_cast<T>(bits);
  }

 private:
  const uint8_t* at_;
};

}  // namespace

std::string PackHead::Bytes() const {
  std::string out(kMagic);
  Put(out, validation > 0 ? kVersion : uint32_t{1});  // older programs read what they can
  Put(out, static_cast<uint32_t>(kind));
  Put(out, side);
  Put(out, classes);
  Put(out, train);
  Put(out, test);
  if (validation > 0) Put(out, validation);
  Put(out, index_begin);
  Put(out, index_bytes);
  Put(out, index_crc);
  const auto* bytes = reinterpret_cast<const uint8_t*>(out.data());
  Put(out, Crc({bytes, out.size()}));
  out.resize(kBytes, '\0');
  return out;
}

PackHead PackHead::Read(std::span<const uint8_t> file, const std::string& path) {
  if (file.size() < kBytes || !std::equal(kMagic.begin(), kMagic.end(), file.begin())) {
    throw Error("{}: is not a pack written by trireme data pack", path);
  }
  PackHead head;
  uint32_t version = 0, kind = 0, crc = 0;
  Cursor cursor(file.data() + kMagic.size());
  cursor.Get(version);
  if (version < 1 || version > kVersion) {
    throw Error("{}: has pack version {}; this program reads 1 to {}", path, version, kVersion);
  }
  cursor.Get(kind);
  cursor.Get(head.side);
  cursor.Get(head.classes);
  cursor.Get(head.train);
  cursor.Get(head.test);
  if (version > 1) cursor.Get(head.validation);
  cursor.Get(head.index_begin);
  cursor.Get(head.index_bytes);
  cursor.Get(head.index_crc);
  cursor.Get(crc);
  const size_t checked = kMagic.size() + 4 * 4 + (version > 1 ? 5 : 4) * 8 + 4;
  if (crc != Crc(file.first(checked)) || kind > 1) throw Error("{}: damaged header", path);
  head.kind = static_cast<PackKind>(kind);
  if (head.index_begin < kBytes || head.index_begin > file.size() ||
      head.index_bytes != file.size() - head.index_begin) {
    throw Error("{}: has {} bytes, but its index ends at byte {}; it was cut short or changed",
                path, file.size(), head.index_begin + head.index_bytes);
  }
  const uint64_t most = head.index_bytes / PackEntry::kBytes;
  if (head.train > most || head.validation > most || head.test > most || head.pictures() > most ||
      head.train == 0 || head.classes == 0 || head.classes > head.index_bytes / 4) {
    throw Error("{}: {} + {} + {} images of {} classes do not fit into its index of {} bytes", path,
                head.train, head.validation, head.test, head.classes, head.index_bytes);
  }
  return head;
}

std::string PackEntry::Bytes() const {
  std::string out;
  Put(out, begin);
  Put(out, bytes);
  Put(out, width);
  Put(out, height);
  Put(out, static_cast<uint32_t>(label));
  Put(out, crc);
  return out;
}

PackEntry PackEntry::Read(const uint8_t* bytes) {
  PackEntry entry;
  uint32_t label = 0;
  Cursor cursor(bytes);
  cursor.Get(entry.begin);
  cursor.Get(entry.bytes);
  cursor.Get(entry.width);
  cursor.Get(entry.height);
  cursor.Get(label);
  cursor.Get(entry.crc);
  entry.label = static_cast<int32_t>(label);
  return entry;
}

uint32_t Crc(std::span<const uint8_t> bytes) {
  return static_cast<uint32_t>(crc32_z(0, bytes.data(), bytes.size()));
}

}  // namespace trireme
