#include "data/feed.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "base/assert.h"

namespace trireme {

Feed::Feed(const Source& source, const Normalizer& normalizer, const Order& order, Augment augment)
    : source_(&source), normalizer_(normalizer), order_(order), augment_(std::move(augment)) {
  TRIREME_ASSERT(normalizer.channels() == source.shape().channels);
}

Feed Feed::ForTraining(const Source& source, const Normalizer& normalizer,
                       const DataOptions& options, uint64_t seed) {
  return {source, normalizer, Order(seed, source.size(), options.shuffle),
          Augment(options.augment, seed, source.shape(), normalizer, source.cuts(),
                  options.least_area)};
}

Feed Feed::ForEvaluation(const Source& source, const Normalizer& normalizer) {
  return {source, normalizer, Order(0, source.size(), false), Augment()};
}

void Feed::Fill(const Positions& range, float* inputs, int32_t* labels) const {
  TRIREME_ASSERT(range.begin >= 0 && range.begin <= range.end && range.end <= size());
  if (decode_s_ > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(decode_s_ * double(range.count())));
  }
  const size_t values = shape().size();
  std::array<int64_t, 64> indices;
  for (int64_t begin = range.begin; begin < range.end;) {
    const size_t count = std::min<size_t>(indices.size(), range.end - begin);
    const std::span<int64_t> samples(indices.data(), count);
    order_.Fill(range.epoch, begin, samples);
    if (source_->cuts()) {
      std::array<Framing, 64> framings;
      for (size_t i = 0; i < count; ++i) framings[i] = augment_.Frame(range.epoch, samples[i]);
      source_->GatherFramed(samples, {framings.data(), count}, normalizer_, inputs, labels);
    } else {
      source_->Gather(samples, normalizer_, inputs, labels);
    }
    if (augment_.active()) {
      for (size_t i = 0; i < count; ++i) {
        augment_.Apply(range.epoch, samples[i], {inputs + i * values, values});
      }
    }
    begin += static_cast<int64_t>(count);
    inputs += count * values;
    labels += count;
  }
}

}  // namespace trireme
