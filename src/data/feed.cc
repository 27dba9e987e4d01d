#include "data/feed.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "base/assert.h"
#include "base/clock.h"
#include "base/thread_clock.h"

namespace trireme {
namespace {

constexpr size_t kChunk = 64;

}  // namespace

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

// A chunk of at most kChunk samples.
void Feed::Gather(int64_t epoch, std::span<const int64_t> samples, float* inputs, int32_t* labels,
                  FetchTimes* times) const {
  const double began = times ? Now() : 0;
  if (!source_->cuts()) {
    source_->Gather(samples, normalizer_, inputs, labels);
    if (times) times->read += Now() - began;
    return;
  }
  std::array<Framing, kChunk> framings;
  for (size_t i = 0; i < samples.size(); ++i) framings[i] = augment_.Frame(epoch, samples[i]);
  FetchTimes some;
  source_->GatherFramed(samples, {framings.data(), samples.size()}, normalizer_, inputs, labels,
                        times ? &some : nullptr);
  if (times) times->AddLike(some, Now() - began);
}

void Feed::Fill(const Positions& range, float* inputs, int32_t* labels, FetchTimes* times) const {
  TRIREME_ASSERT(range.begin >= 0 && range.begin <= range.end && range.end <= size());
  const double worked = times ? ThreadSeconds() : 0;
  if (decode_s_ > 0) {
    const Stopwatch pretended;
    std::this_thread::sleep_for(std::chrono::duration<double>(decode_s_ * double(range.count())));
    if (times) times->decode += pretended.seconds();
  }
  const size_t values = shape().size();
  std::array<int64_t, kChunk> indices;
  for (int64_t begin = range.begin; begin < range.end;) {
    const size_t count = std::min<size_t>(indices.size(), range.end - begin);
    const std::span<int64_t> samples(indices.data(), count);
    order_.Fill(range.epoch, begin, samples);
    Gather(range.epoch, samples, inputs, labels, times);
    normalizer_.ApplyToLabels({labels, count});
    if (augment_.active()) {
      const double began = times ? Now() : 0;
      for (size_t i = 0; i < count; ++i) {
        augment_.Apply(range.epoch, samples[i], {inputs + i * values, values});
      }
      if (times) times->resize += Now() - began;
    }
    begin += static_cast<int64_t>(count);
    inputs += count * values;
    labels += count;
  }
  if (times) times->cpu += ThreadSeconds() - worked;
}

}  // namespace trireme
