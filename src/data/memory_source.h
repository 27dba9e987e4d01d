#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "data/source.h"

namespace trireme {

// Samples of bytes in memory. They may begin behind a header, so that a file is kept as it was
// read.
class ByteSource : public Source {
 public:
  ByteSource(const SampleShape& shape, std::vector<uint8_t> bytes, size_t begin,
             std::vector<int32_t> labels);
  // Borrows them.
  ByteSource(const SampleShape& shape, std::span<const uint8_t> bytes, std::vector<int32_t> labels);

  int32_t label(int64_t index) const override { return labels_[index]; }
  void Read(int64_t index, std::span<float> out) const override;
  void Gather(std::span<const int64_t> indices, const Normalizer& normalizer, float* out,
              int32_t* labels) const override;
  bool has_bytes() const override { return true; }
  void GatherBytes(std::span<const int64_t> indices, std::span<const Framing> framings,
                   uint8_t* out, int32_t* labels, FetchTimes* times) const override;
  void Measure(std::span<const int64_t> indices, ChannelStatistics& statistics) const override;

 private:
  std::span<const uint8_t> sample(int64_t index) const {
    return {bytes_.data() + index * shape().size(), static_cast<size_t>(shape().size())};
  }

  const std::vector<uint8_t> own_;  // empty: they are somebody else's
  const std::span<const uint8_t> bytes_;
  std::vector<int32_t> labels_;
  Normalizer raw_;
};

// Samples of floats in memory.
class FloatSource : public Source {
 public:
  FloatSource(const SampleShape& shape, std::vector<float> values, std::vector<int32_t> labels);
  // Borrows them.
  FloatSource(const SampleShape& shape, std::span<const float> values, std::vector<int32_t> labels);

  int32_t label(int64_t index) const override { return labels_[index]; }
  void Read(int64_t index, std::span<float> out) const override;
  void Gather(std::span<const int64_t> indices, const Normalizer& normalizer, float* out,
              int32_t* labels) const override;

 private:
  std::span<const float> sample(int64_t index) const {
    return {values_.data() + index * shape().size(), static_cast<size_t>(shape().size())};
  }

  const std::vector<float> own_;  // empty: they are somebody else's
  const std::span<const float> values_;
  std::vector<int32_t> labels_;
};

}  // namespace trireme
