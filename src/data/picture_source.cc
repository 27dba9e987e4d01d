#include "data/picture_source.h"

#include <algorithm>
#include <vector>

#include "data/framing.h"
#include "image/renderer.h"

namespace trireme {
namespace {

constexpr int kUsualSize = 224;
constexpr size_t kMeasuredPictures = 512;

SampleShape ShapeOf(const DataOptions& options) {
  const int side = options.size == 0 ? kUsualSize : options.size;
  return {side, side, 3};
}

Colours ColoursOf(const Normalizer& normalizer) {
  Colours colours;
  std::copy_n(normalizer.scale().begin(), 3, colours.scale.begin());
  std::copy_n(normalizer.shift().begin(), 3, colours.shift.begin());
  return colours;
}

}  // namespace

PictureSource::PictureSource(const DataOptions& options, int64_t size)
    : Source(ShapeOf(options), size), centre_(options.centre) {}

void PictureSource::Read(int64_t index, std::span<float> out) const {
  int32_t ignored = 0;
  Gather({&index, 1}, Normalizer::Identity(3), out.data(), &ignored);
}

void PictureSource::Gather(std::span<const int64_t> indices, const Normalizer& normalizer,
                           float* out, int32_t* labels) const {
  const std::vector<Framing> framings(indices.size());
  GatherFramed(indices, framings, normalizer, out, labels);
}

void PictureSource::GatherFramed(std::span<const int64_t> indices,
                                 std::span<const Framing> framings, const Normalizer& normalizer,
                                 float* out, int32_t* labels) const {
  const Colours colours = ColoursOf(normalizer);
  const std::unique_ptr<PictureReader> reader = NewReader();
  Renderer renderer;
  for (size_t i = 0; i < indices.size(); ++i) {
    Decoder& picture = reader->Open(indices[i]);
    renderer.Draw(picture, ChooseView(framings[i], picture.size(), centre_),
                  {shape().width, shape().height}, colours, out + i * shape().size());
    labels[i] = label(indices[i]);
  }
}

void PictureSource::Measure(std::span<const int64_t> indices, ChannelStatistics& statistics) const {
  const size_t count = std::min(indices.size(), kMeasuredPictures);
  std::vector<int64_t> some(count);
  for (size_t i = 0; i < count; ++i) some[i] = indices[i * indices.size() / count];
  Source::Measure(some, statistics);
}

}  // namespace trireme
