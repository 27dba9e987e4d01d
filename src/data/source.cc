#include "data/source.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "base/text.h"

namespace trireme {

std::string Source::NameOf(int64_t index) const { return fmt::format("{}", index); }

void Source::Gather(std::span<const int64_t> indices, const Normalizer& normalizer, float* out,
                    int32_t* labels) const {
  const size_t values = shape_.size();
  for (size_t i = 0; i < indices.size(); ++i) {
    const std::span<float> sample(out + i * values, values);
    Read(indices[i], sample);
    normalizer.Apply(sample, sample.data());
    labels[i] = label(indices[i]);
  }
}

void Source::GatherFramed(std::span<const int64_t>, std::span<const Framing>, const Normalizer&,
                          float*, int32_t*, FetchTimes*) const {
  TRIREME_ASSERT(!"this source does not cut");
}

void Source::GatherBytes(std::span<const int64_t>, std::span<const Framing>, uint8_t*, int32_t*,
                         FetchTimes*) const {
  TRIREME_ASSERT(!"this source has no bytes");
}

void Source::Measure(std::span<const int64_t> indices, ChannelStatistics& statistics) const {
  std::vector<float> sample(shape_.size());
  for (const int64_t index : indices) {
    Read(index, sample);
    int channel = 0;
    for (const float value : sample) {
      statistics.Add(channel, value);
      if (++channel == shape_.channels) channel = 0;
    }
  }
}

Subset::Subset(std::shared_ptr<const Source> whole, std::vector<int64_t> indices)
    : Source(whole->shape(), static_cast<int64_t>(indices.size())),
      whole_(std::move(whole)),
      indices_(std::move(indices)) {}

void Subset::Read(int64_t index, std::span<float> out) const { whole_->Read(indices_[index], out); }

void Subset::Gather(std::span<const int64_t> indices, const Normalizer& normalizer, float* out,
                    int32_t* labels) const {
  std::array<int64_t, 64> mapped;
  for (size_t begin = 0; begin < indices.size(); begin += mapped.size()) {
    const size_t count = std::min(mapped.size(), indices.size() - begin);
    for (size_t i = 0; i < count; ++i) mapped[i] = indices_[indices[begin + i]];
    whole_->Gather({mapped.data(), count}, normalizer, out + begin * shape().size(),
                   labels + begin);
  }
}

void Subset::GatherFramed(std::span<const int64_t> indices, std::span<const Framing> framings,
                          const Normalizer& normalizer, float* out, int32_t* labels,
                          FetchTimes* times) const {
  whole_->GatherFramed(Mapped(indices), framings, normalizer, out, labels, times);
}

void Subset::GatherBytes(std::span<const int64_t> indices, std::span<const Framing> framings,
                         uint8_t* out, int32_t* labels, FetchTimes* times) const {
  std::array<int64_t, 64> mapped;
  for (size_t begin = 0; begin < indices.size(); begin += mapped.size()) {
    const size_t count = std::min(mapped.size(), indices.size() - begin);
    for (size_t i = 0; i < count; ++i) mapped[i] = indices_[indices[begin + i]];
    whole_->GatherBytes({mapped.data(), count},
                        framings.empty() ? framings : framings.subspan(begin, count),
                        out + begin * shape().size(), labels + begin, times);
  }
}

void Subset::Measure(std::span<const int64_t> indices, ChannelStatistics& statistics) const {
  whole_->Measure(Mapped(indices), statistics);
}

std::vector<int64_t> Subset::Mapped(std::span<const int64_t> indices) const {
  std::vector<int64_t> mapped;
  mapped.reserve(indices.size());
  for (const int64_t index : indices) mapped.push_back(indices_[index]);
  return mapped;
}

std::string PartsText(int64_t train, int64_t validation, int64_t test) {
  const std::string middle =
      validation ? fmt::format(", {} to validate", FormatCount(validation)) : "";
  return fmt::format("{} to train{}, {} to test", FormatCount(train), middle, FormatCount(test));
}

}  // namespace trireme
