#pragma once
#include <cstdint>
#include <vector>

#include "transport/memory/image.h"

namespace trireme {

// The room of an image. What is taken follows from the records of regions and sessions, so a box
// that was killed leaves nothing half given out; what was taken and not yet recorded is known to
// the object. One thread at a time.
class Extents {
 public:
  explicit Extents(MemoryImage& image) : image_(image) {}

  // The first place with so much room, all zero if wanted. An Error where there is none, or the
  // disk is full. The caller records it before it takes another one.
  uint64_t Take(uint64_t bytes, bool zeroed);
  // Two at once, for what is recorded together.
  std::pair<uint64_t, uint64_t> TakeTwo(uint64_t first, uint64_t second);

  uint64_t used() const;  // bytes
  static bool Overlap(const MemoryImage& image);

 private:
  struct Extent {
    uint64_t begin, end;
  };
  static std::vector<Extent> Used(const MemoryImage& image);
  uint64_t TakeAmong(std::vector<Extent>& used, uint64_t bytes, bool zeroed);

  MemoryImage& image_;
};

uint64_t RoundUpToPage(uint64_t bytes);

}  // namespace trireme
