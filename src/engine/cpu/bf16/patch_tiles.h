#pragma once
#include "engine/cpu/bf16/unit.h"
#include "engine/cpu/patches.h"

namespace trireme::cpu::bf16 {

// Rows of patches as tiles of A. What lies in the image as the unit wants it is packed from there;
// odd pieces (an image of three colours) are put together in float32 first.
class PatchTiles {
 public:
  PatchTiles(const MatrixUnit& unit, const Patches& patches) : unit_(unit), patches_(patches) {}

  // Values [begin, end) of `count` rows, each row a line of the tile. `begin` is a whole number of
  // steps.
  void PackAlong(const PatchRow* rows, size_t count, size_t begin, size_t end, BFloat* to) const;

  // Values [begin, end) of `depth` rows, each value a line: tiles that stand `tile_size` apart.
  void PackAcross(const PatchRow* rows, size_t depth, size_t begin, size_t end, size_t tile_size,
                  BFloat* to) const;

 private:
  bool IsOneTap() const { return patches_.taps_y * patches_.taps_x == 1; }
  // The channels that a row has at a tap; null: outside of the image.
  const float* Pixel(const PatchRow& row, ptrdiff_t tap_y, ptrdiff_t tap_x) const;
  // Values [begin, end) of a row, in float32.
  void Gather(const PatchRow& row, size_t begin, size_t end, float* to) const;
  // How many values from `at` on lie side by side in every one of the rows.
  size_t CommonRun(const PatchRow* rows, size_t count, size_t at) const;

  const MatrixUnit& unit_;
  const Patches& patches_;
};

}  // namespace trireme::cpu::bf16
