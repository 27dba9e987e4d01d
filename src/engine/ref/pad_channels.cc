#include "engine/ref/kernel.h"

namespace trireme::ref {
namespace {

// Calls visit(place in the image, place in the padded one) for every value that both have.
template <class F>
void ForEachKept(const Shape& image, const Shape& padded, int stride, const F& visit) {
  for (int y = 0; y < padded.height; ++y) {
    for (int x = 0; x < padded.width; ++x) {
      const int64_t from = int64_t{y} * stride * image.width + int64_t{x} * stride;
      const int64_t to = int64_t{y} * padded.width + x;
      for (int c = 0; c < image.channels; ++c) {
        visit(from * image.channels + c, to * padded.channels + c);
      }
    }
  }
}

}  // namespace

void PadChannels(const Call& call) {
  const Tensor &x = call.inputs[0], &y = call.outputs[0];
  for (int64_t n = 0; n < call.samples(); ++n) {
    ForEachKept(x.shape(), y.shape(), call.attributes.stride,
                [&](int64_t from, int64_t to) { y.sample(n)[to] = x.sample(n)[from]; });
  }
}

void PadChannelsGrad(const Call& call) {
  const Tensor &dy = call.inputs[0], &dx = call.outputs[0];
  for (int64_t n = 0; n < call.samples(); ++n) {
    ForEachKept(dx.shape(), dy.shape(), call.attributes.stride,
                [&](int64_t from, int64_t to) { dx.sample(n)[from] = dy.sample(n)[to]; });
  }
}

}  // namespace trireme::ref
