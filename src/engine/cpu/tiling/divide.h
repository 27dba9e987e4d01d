#pragma once
#include <algorithm>
#include <cstddef>

#include "base/team.h"

namespace trireme::cpu {

// Work below this many multiply-adds (or as many bytes moved) costs less than waking a thread.
inline constexpr size_t kParallelWork = 400'000;

// Divides the tiles of rows or the panels of columns of a product of `work` multiply-adds among the
// threads and calls run(tile_begin, tile_end, panel_begin, panel_end, thread). Fewer than `grain`
// at a time would cost too much besides their work, unless there are too few for all threads.
template <class F>
void Divide(Team& team, size_t tiles, size_t panels, bool by_tiles, size_t work, size_t grain,
            const F& run) {
  const size_t all = by_tiles ? tiles : panels;
  const size_t least =
      work < kParallelWork ? all : std::min(grain, all / static_cast<size_t>(team.size()));
  ParallelFor(team, all, least, [&](size_t begin, size_t end, size_t thread) {
    if (by_tiles) {
      run(begin, end, size_t{0}, panels, thread);
    } else {
      run(size_t{0}, tiles, begin, end, thread);
    }
  });
}

}  // namespace trireme::cpu
