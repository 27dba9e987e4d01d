#include "data/memory_source.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"

namespace trireme {
namespace {

// Small samples lie scattered: fetching the next one while this one is scaled takes MNIST batches
// from 30 to 17 us. In large ones the hardware sees the stream by itself.
void Prefetch(std::span<const uint8_t> bytes) {
  for (size_t i = 0; i < std::min<size_t>(bytes.size(), 4096); i += 64)
    __builtin_prefetch(&bytes[i]);
}

}  // namespace

ByteSource::ByteSource(const SampleShape& shape, std::vector<uint8_t> bytes, size_t begin,
                       std::vector<int32_t> labels)
    : Source(shape, static_cast<int64_t>(labels.size())),
      own_(std::move(bytes)),
      bytes_(std::span(own_).subspan(begin)),
      labels_(std::move(labels)),
      raw_(Normalizer::Identity(shape.channels)) {
  TRIREME_ASSERT(labels_.size() * shape.size() <= bytes_.size());
}

ByteSource::ByteSource(const SampleShape& shape, std::span<const uint8_t> bytes,
                       std::vector<int32_t> labels)
    : Source(shape, static_cast<int64_t>(labels.size())),
      bytes_(bytes),
      labels_(std::move(labels)),
      raw_(Normalizer::Identity(shape.channels)) {
  TRIREME_ASSERT(labels_.size() * shape.size() == bytes_.size());
}

void ByteSource::Read(int64_t index, std::span<float> out) const {
  raw_.Apply(sample(index), out.data());
}

void ByteSource::Gather(std::span<const int64_t> indices, const Normalizer& normalizer, float* out,
                        int32_t* labels) const {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (i + 1 < indices.size()) Prefetch(sample(indices[i + 1]));
    normalizer.Apply(sample(indices[i]), out + i * shape().size());
    labels[i] = labels_[indices[i]];
  }
}

void ByteSource::GatherBytes(std::span<const int64_t> indices, std::span<const Framing>,
                             uint8_t* out, int32_t* labels, FetchTimes*) const {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (i + 1 < indices.size()) Prefetch(sample(indices[i + 1]));
    const std::span<const uint8_t> bytes = sample(indices[i]);
    out = std::copy(bytes.begin(), bytes.end(), out);
    labels[i] = labels_[indices[i]];
  }
}

void ByteSource::Measure(std::span<const int64_t> indices, ChannelStatistics& statistics) const {
  const size_t channels = shape().channels;
  if (channels > 64) return Source::Measure(indices, statistics);
  // Four tables in turn: dark pictures would otherwise wait for one and the same counter.
  std::vector<std::array<int64_t, 256>> counts(4 * channels);
  for (const int64_t index : indices) {
    const std::span<const uint8_t> bytes = sample(index);
    size_t table = 0;
    for (const uint8_t byte : bytes) {
      ++counts[table][byte];
      if (++table == counts.size()) table = 0;
    }
  }
  std::vector<float> values(256);
  for (int i = 0; i < 256; ++i) values[i] = static_cast<float>(i) * (1.0f / 255);
  for (size_t table = 0; table < counts.size(); ++table) {
    for (int i = 0; i < 256; ++i) {
      statistics.Add(static_cast<int>(table % channels), values[i],
                     static_cast<double>(counts[table][i]));
    }
  }
}

FloatSource::FloatSource(const SampleShape& shape, std::vector<float> values,
                         std::vector<int32_t> labels)
    : Source(shape, static_cast<int64_t>(labels.size())),
      own_(std::move(values)),
      values_(own_),
      labels_(std::move(labels)) {
  TRIREME_ASSERT(labels_.size() * shape.size() == values_.size());
}

FloatSource::FloatSource(const SampleShape& shape, std::span<const float> values,
                         std::vector<int32_t> labels)
    : Source(shape, static_cast<int64_t>(labels.size())),
      values_(values),
      labels_(std::move(labels)) {
  TRIREME_ASSERT(labels_.size() * shape.size() == values_.size());
}

void FloatSource::Read(int64_t index, std::span<float> out) const {
  const std::span<const float> values = sample(index);
  std::copy(values.begin(), values.end(), out.begin());
}

void FloatSource::Gather(std::span<const int64_t> indices, const Normalizer& normalizer, float* out,
                         int32_t* labels) const {
  for (size_t i = 0; i < indices.size(); ++i) {
    normalizer.Apply(sample(indices[i]), out + i * shape().size());
    labels[i] = labels_[indices[i]];
  }
}

}  // namespace trireme
