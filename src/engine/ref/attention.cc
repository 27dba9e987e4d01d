#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/ref/kernel.h"

namespace trireme::ref {
namespace {

// T tokens of H heads of D channels; x is [T][3][H][D], y [T][H][D], log_sum [T][H].
struct Sizes {
  int64_t T, H, D;
  double scale;

  explicit Sizes(const Call& call) {
    const Shape& x = call.inputs[0].shape();
    T = int64_t{x.height} * x.width;
    H = call.attributes.heads;
    D = x.channels / 3 / H;
    scale = 1 / std::sqrt(double(D));
  }
  // Of token t: part 0 is q, 1 k, 2 v.
  int64_t At(int64_t t, int64_t part, int64_t head) const {
    return ((t * 3 + part) * H + head) * D;
  }
};

double Dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void AddTimes(double factor, const double* x, int64_t n, double* sum) {
  for (int64_t i = 0; i < n; ++i) sum[i] += factor * x[i];
}

}  // namespace

void Attention(const Call& call) {
  const Sizes s(call);
  std::vector<double> scores(static_cast<size_t>(s.T));
  for (int64_t n = 0; n < call.samples(); ++n) {
    const double* x = call.inputs[0].sample(n);
    for (int64_t i = 0; i < s.T; ++i) {
      for (int64_t h = 0; h < s.H; ++h) {
        for (int64_t j = 0; j < s.T; ++j) {
          scores[j] = s.scale * Dot(x + s.At(i, 0, h), x + s.At(j, 1, h), s.D);
        }
        const double most = *std::ranges::max_element(scores);
        double sum = 0;
        for (const double score : scores) sum += std::exp(score - most);
        const double log_sum = most + std::log(sum);
        call.outputs[1].sample(n)[i * s.H + h] = log_sum;
        double* y = call.outputs[0].sample(n) + (i * s.H + h) * s.D;
        for (int64_t j = 0; j < s.T; ++j) {
          AddTimes(std::exp(scores[j] - log_sum), x + s.At(j, 2, h), s.D, y);
        }
      }
    }
  }
}

void AttentionGrad(const Call& call) {
  const Sizes s(call);
  for (int64_t n = 0; n < call.samples(); ++n) {
    const double* x = call.inputs[0].sample(n);
    double* dx = call.outputs[0].sample(n);
    for (int64_t i = 0; i < s.T; ++i) {
      for (int64_t h = 0; h < s.H; ++h) {
        const int64_t row = i * s.H + h;
        const double* dy = call.inputs[3].sample(n) + row * s.D;
        const double mean = Dot(dy, call.inputs[1].sample(n) + row * s.D, s.D);
        for (int64_t j = 0; j < s.T; ++j) {
          const double score = s.scale * Dot(x + s.At(i, 0, h), x + s.At(j, 1, h), s.D);
          const double share = std::exp(score - call.inputs[2].sample(n)[row]);
          const double d_score = s.scale * share * (Dot(dy, x + s.At(j, 2, h), s.D) - mean);
          AddTimes(d_score, x + s.At(j, 1, h), s.D, dx + s.At(i, 0, h));
          AddTimes(d_score, x + s.At(i, 0, h), s.D, dx + s.At(j, 1, h));
          AddTimes(share, dy, s.D, dx + s.At(j, 2, h));
        }
      }
    }
  }
}

}  // namespace trireme::ref
