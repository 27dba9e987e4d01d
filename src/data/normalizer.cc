#include "data/normalizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.h"
#include "base/error.h"
#include "base/label.h"
#include "data/options.h"
#include "data/source.h"

namespace trireme {
namespace {

constexpr int64_t kMostMeasured = int64_t{1} << 28;

std::vector<float> Repeat(const std::vector<float>& channels) {
  const size_t times = channels.size() < 64 ? 64 : 1;
  std::vector<float> pattern;
  pattern.reserve(channels.size() * times);
  for (size_t i = 0; i < times; ++i) {
    pattern.insert(pattern.end(), channels.begin(), channels.end());
  }
  return pattern;
}

ChannelStatistics Measure(const Source& source) {
  ChannelStatistics statistics(source.shape().channels);
  const int64_t most = std::max<int64_t>(1, kMostMeasured / source.shape().size());
  const int64_t measured = std::min(source.size(), most);
  std::vector<int64_t> indices(measured);
  for (int64_t i = 0; i < measured; ++i) {
    indices[i] = static_cast<int64_t>(static_cast<double>(i) * source.size() / measured);
  }
  source.Measure(indices, statistics);
  return statistics;
}

std::pair<double, double> ScaleAndShift(const ChannelStatistics::Channel& c, bool standard) {
  const double deviation = std::sqrt(c.squares / c.count);
  const double scale = 1 / (standard ? deviation : c.max - c.min);
  const double shift = -(standard ? c.mean : c.min) * scale;
  const double largest = std::max(std::abs(scale), std::abs(shift));
  // Nothing to divide by, also in float.
  if (c.max == c.min || !std::isfinite(static_cast<float>(largest))) return {1, -c.mean};
  return {scale, shift};
}

}  // namespace

Normalizer::Normalizer(std::vector<float> scale, std::vector<float> shift)
    : scale_(std::move(scale)),
      shift_(std::move(shift)),
      scale_pattern_(Repeat(scale_)),
      shift_pattern_(Repeat(shift_)) {
  TRIREME_ASSERT(!scale_.empty() && scale_.size() == shift_.size());
}

Normalizer Normalizer::Identity(int channels) {
  return {std::vector<float>(channels, 1.0f), std::vector<float>(channels, 0.0f)};
}

void Normalizer::ApplyToLabels(std::span<int32_t> labels) const {
  if (!target_) return;
  for (int32_t& label : labels) label = LabelOfNumber(target_->Standard(NumberOfLabel(label)));
}

// Chan, Golub, LeVeque 1979.
void ChannelStatistics::Add(const ChannelStatistics& other) {
  for (size_t i = 0; i < channels_.size(); ++i) {
    Channel& c = channels_[i];
    const Channel& o = other.channels_[i];
    if (o.count == 0) continue;
    if (c.count == 0) {
      c = o;
      continue;
    }
    const double distance = o.mean - c.mean, count = c.count + o.count;
    c.mean += distance * o.count / count;
    c.squares += o.squares + distance * distance * c.count * o.count / count;
    c.min = std::min(c.min, o.min);
    c.max = std::max(c.max, o.max);
    c.count = count;
  }
}

void ChannelStatistics::Add(int channel, double value, double times) {
  if (times == 0) return;
  Channel& c = channels_[channel];
  c.min = c.count == 0 ? value : std::min(c.min, value);
  c.max = c.count == 0 ? value : std::max(c.max, value);
  c.count += times;
  const double distance = value - c.mean;
  c.mean += distance * times / c.count;
  c.squares += times * distance * (value - c.mean);
}

Normalizer FitNormalizer(const Source& train, std::string_view kind) {
  const int channels = train.shape().channels;
  if (kind == "none") return Normalizer::Identity(channels);
  if (kind != "standard" && kind != "minmax") {
    throw UsageError("data.normalize must be standard, minmax or none, got '{}'", kind);
  }
  const ChannelStatistics statistics = Measure(train);
  std::vector<float> scale(channels), shift(channels);
  for (int c = 0; c < channels; ++c) {
    const auto [a, b] = ScaleAndShift(statistics.channel(c), kind == "standard");
    scale[c] = static_cast<float>(a);
    shift[c] = static_cast<float>(b);
  }
  return {std::move(scale), std::move(shift)};
}

Normalizer KnownNormalizer(std::span<const double> mean, std::span<const double> deviation) {
  TRIREME_ASSERT(mean.size() == deviation.size());
  std::vector<float> scale, shift;
  for (size_t c = 0; c < mean.size(); ++c) {
    scale.push_back(static_cast<float>(1 / deviation[c]));
    shift.push_back(static_cast<float>(-mean[c] / deviation[c]));
  }
  return {std::move(scale), std::move(shift)};
}

TargetScale FitTarget(const Source& train) {
  ChannelStatistics statistics(1);
  for (int64_t i = 0; i < train.size(); ++i) statistics.Add(0, NumberOfLabel(train.label(i)));
  const auto& c = statistics.channel(0);
  if (c.max == c.min) return {c.mean, 1};
  return {c.mean, std::sqrt(c.squares / c.count)};
}

Normalizer MakeNormalizer(const Source& train, const DataOptions& options) {
  const bool given = options.normalize == "given";
  if (!given && !(options.mean.empty() && options.deviation.empty())) {
    throw UsageError(
        "data.mean and data.deviation need data.normalize = \"given\", but it is \"{}\"",
        options.normalize);
  }
  if (!given && options.normalize != "imagenet") return FitNormalizer(train, options.normalize);
  const std::vector<double> mean = given ? options.mean : std::vector{0.485, 0.456, 0.406};
  const std::vector<double> deviation =
      given ? options.deviation : std::vector{0.229, 0.224, 0.225};
  const auto channels = static_cast<size_t>(train.shape().channels);
  if (mean.size() != channels || deviation.size() != channels) {
    throw UsageError(
        "data.normalize = \"{}\": {} means and {} deviations, but samples have {} channels",
        options.normalize, mean.size(), deviation.size(), channels);
  }
  for (const double value : deviation) {
    if (!(value >= 1e-6)) throw UsageError("data.deviation must be above 0, got {}", value);
  }
  return KnownNormalizer(mean, deviation);
}

}  // namespace trireme
