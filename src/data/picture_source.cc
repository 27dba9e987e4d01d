#include "data/picture_source.h"

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "data/framing.h"
#include "image/renderer.h"

namespace trireme {
namespace {

constexpr int kUsualSize = 224;
constexpr size_t kMeasuredPictures = 512;
constexpr int kSmall = 64;         // pixels
constexpr int64_t kLookedAt = 64;  // pictures, evenly chosen, to see whether they are small
constexpr int kStep = 4;           // sizes that differ are rounded up to a multiple of it
constexpr int kPhotoStep = 16;

// The clock is looked at twice per row of a timed picture, some per cent of a small one's time.
constexpr size_t kTimedInterval = 8;

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

SampleShape PictureSource::StoredShape(int64_t index) const {
  const std::unique_ptr<PictureReader> reader = NewReader();
  reader->Fetch(index);
  const PictureSize size = reader->Open().size();
  return {size.height, size.width, 3};
}

void PictureSource::Read(int64_t index, std::span<float> out) const {
  int32_t ignored = 0;
  Gather({&index, 1}, Normalizer::Identity(3), out.data(), &ignored);
}

void PictureSource::Gather(std::span<const int64_t> indices, const Normalizer& normalizer,
                           float* out, int32_t* labels) const {
  const std::vector<Framing> framings(indices.size());
  GatherFramed(indices, framings, normalizer, out, labels, nullptr);
}

template <class F>
void PictureSource::ForEach(std::span<const int64_t> indices, std::span<const Framing> framings,
                            int32_t* labels, FetchTimes* times, const F& draw) const {
  const std::unique_ptr<PictureReader> reader = NewReader();
  Renderer renderer;
  for (size_t i = 0; i < indices.size(); ++i) {
    const bool timed = times && i % kTimedInterval == 0;
    double decode_s = 0;
    const double began = timed ? Now() : 0;
    reader->Fetch(indices[i]);
    const double fetched = timed ? Now() : 0;
    Decoder& picture = reader->Open();
    const double opened = timed ? Now() : 0;
    draw(renderer, i, picture, ChooseView(framings[i], picture.size(), centre_),
         timed ? &decode_s : nullptr);
    labels[i] = label(indices[i]);
    if (!timed) continue;
    times->read += fetched - began;
    times->decode += opened - fetched + decode_s;
    times->resize += Now() - opened - decode_s;
  }
}

void PictureSource::GatherFramed(std::span<const int64_t> indices,
                                 std::span<const Framing> framings, const Normalizer& normalizer,
                                 float* out, int32_t* labels, FetchTimes* times) const {
  const Colours colours = ColoursOf(normalizer);
  ForEach(indices, framings, labels, times,
          [&](Renderer& renderer, size_t i, Decoder& picture, const View& view, double* decode_s) {
            renderer.Draw(picture, view, {shape().width, shape().height}, colours,
                          out + i * shape().size(), decode_s);
          });
}

void PictureSource::GatherBytes(std::span<const int64_t> indices, std::span<const Framing> framings,
                                uint8_t* out, int32_t* labels, FetchTimes* times) const {
  ForEach(indices, framings, labels, times,
          [&](Renderer& renderer, size_t i, Decoder& picture, const View& view, double* decode_s) {
            renderer.Draw(picture, view, {shape().width, shape().height}, out + i * shape().size(),
                          decode_s);
          });
}

void PictureSource::Measure(std::span<const int64_t> indices, ChannelStatistics& statistics) const {
  const size_t count = std::min(indices.size(), kMeasuredPictures);
  std::vector<int64_t> some(count);
  for (size_t i = 0; i < count; ++i) some[i] = indices[i * indices.size() / count];
  Source::Measure(some, statistics);
}

OwnSize PictureSource::FindOwnSize() const {
  const auto reader = NewReader();
  const int64_t count = std::min(kLookedAt, size());
  std::vector<int> sides;
  bool small = true;
  for (int64_t i = 0; i < count; ++i) {
    reader->Fetch(i * size() / count);
    const PictureSize picture = reader->Open().size();
    sides.push_back(std::min(picture.width, picture.height));
    small = small && std::max(picture.width, picture.height) <= kSmall;
  }
  if (sides.empty()) return {};
  std::ranges::sort(sides);
  const int most = sides.back();
  if (small) {
    return {sides[0] == most ? most : (most + kStep - 1) / kStep * kStep, /*whole=*/true};
  }
  const int part = sides[sides.size() / 2] * 3 / 4 / kPhotoStep * kPhotoStep;
  return {part < kUsualSize ? std::max(part, kSmall) : 0};
}

}  // namespace trireme
