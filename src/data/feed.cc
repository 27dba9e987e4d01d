#include "data/feed.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

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
          Augment(options.augment, seed,
                  {.shape = source.shape(),
                   .cut = source.cuts(),
                   .bytes = source.has_bytes(),
                   .least_area = options.least_area,
                   .jitter = options.jitter,
                   .operations = options.operations,
                   .magnitude = options.magnitude,
                   .mixup_alpha = options.mixup_alpha,
                   .cutmix_alpha = options.cutmix_alpha},
                  normalizer)};
}

Feed Feed::ForEvaluation(const Source& source, const Normalizer& normalizer) {
  return {source, normalizer, Order(0, source.size(), false), Augment()};
}

size_t Slot::Room(size_t values) const {
  size_t samples = labels.size();
  if (!numbers.empty()) return std::min(samples, numbers.size());
  return std::min(samples, std::max(inputs.size(), bytes.size()) / values);
}

Slot Slot::Part(size_t first, size_t count, size_t values) const {
  const auto part = [=](auto span, size_t each) {
    return span.empty() ? span : span.subspan(first * each, count * each);
  };
  return {.inputs = part(inputs, values),
          .labels = part(labels, 1),
          .bytes = part(bytes, values),
          .numbers = part(numbers, 1),
          .changes = part(changes, 1),
          .mixes = part(mixes, 1)};
}

struct Feed::Scratch {
  std::vector<float> mapped, other;  // a picture each, where it is needed
};

// A chunk of at most kChunk samples.
void Feed::Gather(int64_t epoch, std::span<const int64_t> samples, const Slot& slot,
                  FetchTimes* times) const {
  const double began = times ? Now() : 0;
  int32_t* const labels = slot.labels.data();
  if (!slot.numbers.empty()) {
    for (size_t i = 0; i < samples.size(); ++i) {
      slot.numbers[i] = static_cast<int32_t>(samples[i]);
      labels[i] = source_->label(samples[i]);
    }
    if (times) times->read += Now() - began;
    return;
  }
  if (!source_->cuts()) {
    if (slot.bytes.empty()) {
      source_->Gather(samples, normalizer_, slot.inputs.data(), labels);
    } else {
      source_->GatherBytes(samples, {}, slot.bytes.data(), labels, nullptr);
    }
    if (times) times->read += Now() - began;
    return;
  }
  std::array<Framing, kChunk> all;
  const std::span framings(all.data(), samples.size());
  for (size_t i = 0; i < samples.size(); ++i) framings[i] = augment_.Frame(epoch, samples[i]);
  FetchTimes some;
  FetchTimes* const timed = times ? &some : nullptr;
  if (slot.bytes.empty()) {
    source_->GatherFramed(samples, framings, normalizer_, slot.inputs.data(), labels, timed);
  } else {
    source_->GatherBytes(samples, framings, slot.bytes.data(), labels, timed);
  }
  if (times) times->AddLike(some, Now() - began);
}

// Values are changed here, bytes where they are normalised.
void Feed::Change(int64_t epoch, std::span<const int64_t> samples, const Slot& slot,
                  Scratch& scratch, FetchTimes* times) const {
  const double began = times ? Now() : 0;
  const size_t values = shape().size();
  for (size_t i = 0; i < samples.size(); ++i) {
    const SampleChange change = augment_.Change(epoch, samples[i]);
    if (slot.inputs.empty()) {
      slot.changes[i] = change;
    } else {
      augment_.Apply(change, slot.inputs.subspan(i * values, values), scratch.mapped);
    }
  }
  if (times) times->resize += Now() - began;
}

// Another sample is fetched and changed as if it stood here itself, so that what it is depends on
// (seed, epoch, sample) alone: neighbours of a batch would depend on how an epoch is cut.
void Feed::Mix(int64_t epoch, std::span<const int64_t> samples, const Slot& slot, Scratch& scratch,
               FetchTimes* times) const {
  TRIREME_ASSERT(!slot.inputs.empty());
  const size_t values = shape().size();
  scratch.other.resize(values);
  for (size_t i = 0; i < samples.size(); ++i) {
    const SampleMix mix = augment_.Mix(epoch, samples[i], source_->size());
    int32_t& label = slot.labels[i];
    LabelMix labels{.other = label};
    if (mix.share > 0) {
      const Slot other{.inputs = scratch.other, .labels = {&labels.other, 1}};
      Gather(epoch, {&mix.other, 1}, other, times);
      normalizer_.ApplyToLabels(other.labels);
      if (augment_.active()) Change(epoch, {&mix.other, 1}, other, scratch, times);
      augment_.Apply(mix, scratch.other, slot.inputs.subspan(i * values, values));
      labels.share = mix.share;
    }
    if (!mixes_labels()) {
      const float number = NumberOfLabel(label), other = NumberOfLabel(labels.other);
      label = LabelOfNumber((1 - labels.share) * number + labels.share * other);
      continue;
    }
    if (labels.share > 0.5f) {
      std::swap(label, labels.other);
      labels.share = 1 - labels.share;
    }
    if (!slot.mixes.empty()) slot.mixes[i] = labels;
  }
}

void Feed::Fill(const Positions& range, float* inputs, int32_t* labels, FetchTimes* times) const {
  const auto count = static_cast<size_t>(range.count());
  Fill(range, Slot{{inputs, count * shape().size()}, {labels, count}}, times);
}

void Feed::Fill(const Positions& range, const Slot& slot, FetchTimes* times) const {
  TRIREME_ASSERT(range.begin >= 0 && range.begin <= range.end && range.end <= size());
  const double worked = times ? ThreadSeconds() : 0;
  if (decode_s_ > 0) {
    const Stopwatch pretended;
    std::this_thread::sleep_for(std::chrono::duration<double>(decode_s_ * double(range.count())));
    if (times) times->decode += pretended.seconds();
  }
  std::array<int64_t, kChunk> indices;
  Scratch scratch;
  for (int64_t begin = range.begin; begin < range.end;) {
    const size_t count = std::min<size_t>(indices.size(), range.end - begin);
    const std::span<int64_t> samples(indices.data(), count);
    const Slot piece = slot.Part(static_cast<size_t>(begin - range.begin), count, shape().size());
    order_.Fill(range.epoch, begin, samples);
    Gather(range.epoch, samples, piece, times);
    normalizer_.ApplyToLabels(piece.labels);
    if (augment_.active()) Change(range.epoch, samples, piece, scratch, times);
    if (augment_.mixes()) Mix(range.epoch, samples, piece, scratch, times);
    begin += static_cast<int64_t>(count);
  }
  if (times) times->cpu += ThreadSeconds() - worked;
}

}  // namespace trireme
