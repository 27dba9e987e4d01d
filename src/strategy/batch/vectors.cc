#include "strategy/batch/vectors.h"

#include <algorithm>
#include <array>
#include <bit>

#include "flat/arithmetic.h"
#include "flat/staging.h"

namespace trireme {

Vectors::Vectors(Device& device, Queue& queue, const Layout& layout, Range stretch, int count,
                 double decay)
    : queue_(queue), stretch_(stretch), decay_(decay), dot_(device, flat::kDoubleFloats) {
  for (int i = 0; i < count; ++i) vectors_.emplace_back(device, stretch.size);
  for (size_t p = 0; p < layout.parameters.size() && decay != 0; ++p) {
    const size_t begin = std::max(layout.parameters[p].begin, stretch.begin);
    const size_t end = std::min(layout.parameters[p].end(), stretch.end());
    if (layout.decays[p] && begin < end) decaying_.push_back({begin - stretch.begin, end - begin});
  }
}

double Vectors::DotOf(Slice x, Slice y) {
  flat::Dot(queue_, x, y, dot_);
  std::array<float, flat::kDoubleFloats> bits;
  flat::GetNow(queue_, dot_, bits);
  return std::bit_cast<double>(bits);
}

double Vectors::Dot(int x, int y) { return stretch_.size ? DotOf(at(x), at(y)) : 0; }

void Vectors::Scale(double a, int x) { flat::Scale(queue_, float(a), at(x)); }

void Vectors::Axpy(double a, int x, int y) { flat::Axpy(queue_, float(a), at(x), at(y)); }

void Vectors::Copy(int from, int to) { flat::Copy(queue_, at(from), at(to)); }

double Vectors::AddPenalty(int point, int gradient) {
  double penalty = 0;
  for (const Range& range : decaying_) {
    const Slice weights = at(point).Sub(range.begin, range.size);
    flat::Axpy(queue_, float(decay_), weights, at(gradient).Sub(range.begin, range.size));
    penalty += 0.5 * decay_ * DotOf(weights, weights);
  }
  return penalty;
}

void Vectors::Put(int vector, std::span<const float> values) {
  flat::PutNow(queue_, values, at(vector));
}

void Vectors::Get(int vector, std::span<float> values) { flat::GetNow(queue_, at(vector), values); }

}  // namespace trireme
