#pragma once
#include "engine/cpu/bf16/unit.h"
#include "engine/cpu/tiling/patches.h"

namespace trireme::cpu::bf16 {

// Rows of patches as tiles of A. What lies in the image as the unit wants it is
// packed from there; odd pieces (an image of three colours) are put together first.
// T: what the image holds, float or BFloat.
template <class T>
class PatchTiles {
 public:
  using Row = PatchRowOf<T>;

  PatchTiles(const MatrixUnit& unit, const PatchesOf<T>& patches)
      : unit_(unit),
        patches_(patches),
        channels_(size_t(patches.channels)),
        line_(patches.taps_x * channels_) {}

  // Values [begin, end) of `count` rows, each row a line of the tile. `begin`
  // is a whole number of steps.
  void PackAlong(const Row* rows, size_t count, size_t begin, size_t end, BFloat* to) const;

  // Values [begin, end) of `depth` rows, each value a line: tiles that stand
  // `tile_size` apart.
  void PackAcross(const Row* rows, size_t depth, size_t begin, size_t end, size_t tile_size,
                  BFloat* to) const;

 private:
  bool IsOneTap() const { return patches_.taps_y * patches_.taps_x == 1; }
  // All taps of a line lie side by side in the image.
  bool HasWholeLines(const Row& row) const {
    return patches_.tap_step == 1 && row.x >= 0 &&
           row.x + ptrdiff_t(patches_.taps_x) <= patches_.width;
  }
  // The channels that a row has at a tap; null: outside of the image.
  const T* Pixel(const Row& row, ptrdiff_t tap_y, ptrdiff_t tap_x) const;
  // Values [begin, end) of a row.
  void Gather(const Row& row, size_t begin, size_t end, T* to) const;

  const MatrixUnit& unit_;
  const PatchesOf<T>& patches_;
  const size_t channels_, line_;  // values of a tap, of a line of taps
};

}  // namespace trireme::cpu::bf16
