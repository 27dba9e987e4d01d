#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>

namespace trireme::cpu::bf16 {

inline constexpr size_t kPlaceStep = 32;  // places that one instruction adds up

constexpr size_t WholeSteps(size_t places) {
  return (places + kPlaceStep - 1) / kPlaceStep * kPlaceStep;
}

// A sum over places is cut into parts that have sums of their own, added in their order: as many as
// the sizes want, so threads do not change a bit. Few sums over many places have many parts.
class PlaceParts {
 public:
  // At least `least` places a part, at most `most_sums` floats of all parts' sums.
  PlaceParts(size_t places, size_t sums, size_t least, size_t most_sums)
      : places_(places), sums_(sums) {
    const size_t most = std::clamp<size_t>(most_sums / sums, 1, kMostParts);
    count_ = std::bit_floor(std::clamp<size_t>(places / least, 1, most));
  }

  size_t count() const { return count_; }
  size_t begin(size_t part) const {
    const size_t steps = (places_ + kPlaceStep - 1) / kPlaceStep;
    return std::min(places_, steps * part / count_ * kPlaceStep);
  }
  size_t floats() const { return count_ > 1 ? count_ * sums_ : 0; }  // of all parts' sums

 private:
  static constexpr size_t kMostParts = 16;

  size_t places_, sums_, count_;
};

// What a thread computes at once: blocks [row_begin, row_end) x [column_begin, column_end) of the
// sums over the places [begin, end) of a part.
struct SumShare {
  size_t part, begin, end;
  size_t row_begin, row_end, column_begin, column_end;

  size_t places() const { return end - begin; }
  size_t rows() const { return row_end - row_begin; }
  size_t columns() const { return column_end - column_begin; }
};

// How blocks of sums are divided among threads besides the parts.
class BlockSplit {
 public:
  // What a thread's products, packed rows and packed columns cost, per block.
  struct Cost {
    size_t product, row, column;
  };

  BlockSplit(const PlaceParts& parts, size_t rows, size_t columns, size_t threads, const Cost& cost)
      : parts_(parts), rows_(rows), columns_(columns) {
    const size_t all_parts = parts.count();
    if (all_parts % threads == 0) return;
    const size_t wanted = all_parts > threads ? 2 : (threads + all_parts - 1) / all_parts;
    size_t least = ~size_t{0};
    for (size_t r = 1; r <= std::min(wanted, rows); ++r) {
      const size_t c = std::min(wanted / r, columns);
      const size_t own_rows = (rows + r - 1) / r, own_columns = (columns + c - 1) / c;
      const size_t all =
          cost.product * own_rows * own_columns + cost.row * own_rows + cost.column * own_columns;
      if (all >= least) continue;
      least = all;
      row_groups_ = r;
      column_groups_ = c;
    }
  }

  size_t count() const { return parts_.count() * row_groups_ * column_groups_; }  // shares
  SumShare operator[](size_t i) const {
    const size_t c = i % column_groups_, r = i / column_groups_ % row_groups_;
    const size_t part = i / column_groups_ / row_groups_;
    return {.part = part,
            .begin = parts_.begin(part),
            .end = parts_.begin(part + 1),
            .row_begin = rows_ * r / row_groups_,
            .row_end = rows_ * (r + 1) / row_groups_,
            .column_begin = columns_ * c / column_groups_,
            .column_end = columns_ * (c + 1) / column_groups_};
  }

 private:
  const PlaceParts& parts_;
  size_t rows_, columns_;
  size_t row_groups_ = 1, column_groups_ = 1;
};

}  // namespace trireme::cpu::bf16
