#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "data/scale.h"

namespace trireme {

class Source;
struct DataOptions;

// Numbers to predict: a network learns (number - mean) / deviation.
struct TargetScale {
  double mean = 0, deviation = 1;

  float Standard(float number) const { return static_cast<float>((number - mean) / deviation); }
  double Original(float standard) const { return mean + deviation * standard; }
};

// What a network sees of a raw value: value * scale + shift, per channel of an image or column of
// a table; and of the label, if that is a number. A value to copy; saved with a model as its two
// vectors and the target's scale.
class Normalizer {
 public:
  Normalizer(std::vector<float> scale, std::vector<float> shift);
  static Normalizer Identity(int channels);

  int channels() const { return static_cast<int>(scale_.size()); }
  const std::vector<float>& scale() const { return scale_; }
  const std::vector<float>& shift() const { return shift_; }

  const std::optional<TargetScale>& target() const { return target_; }  // none: classes
  void SetTarget(const TargetScale& target) { target_ = target; }
  void ApplyToLabels(std::span<int32_t> labels) const;  // those of classes stay as they are

  // Values of whole samples, channels last. `out` may be `in`.
  void Apply(std::span<const uint8_t> in, float* out) const { ScaleBytes(in, pattern(), out); }
  void Apply(std::span<const float> in, float* out) const { ScaleFloats(in, pattern(), out); }

 private:
  ScalePattern pattern() const {
    return {scale_pattern_.data(), shift_pattern_.data(), scale_pattern_.size()};
  }

  std::vector<float> scale_, shift_;
  std::optional<TargetScale> target_;
  std::vector<float> scale_pattern_, shift_pattern_;  // repeated to the length of some vectors
};

// Running mean, variance and range of every channel, in double (Welford 1962).
class ChannelStatistics {
 public:
  explicit ChannelStatistics(int channels) : channels_(channels) {}

  struct Channel {
    double count = 0, mean = 0, squares = 0;  // squares: the sum of squared distances to the mean
    double min = 0, max = 0;
  };

  int channels() const { return static_cast<int>(channels_.size()); }
  const Channel& channel(int c) const { return channels_[c]; }

  void Add(int channel, double value, double times = 1);
  void Add(const ChannelStatistics& other);  // of other values of the same channels

 private:
  std::vector<Channel> channels_;
};

// `kind` is "standard" (mean 0, deviation 1), "minmax" (0 to 1) or "none". A channel that is
// constant in the training set becomes 0. Beyond 2^28 values an even sample of the set is measured.
Normalizer FitNormalizer(const Source& train, std::string_view kind);

// Mean 0 and deviation 1 where these are the training set's.
Normalizer KnownNormalizer(std::span<const double> mean, std::span<const double> deviation);

// Mean and deviation of labels that are numbers; of equal ones the deviation is 1.
TargetScale FitTarget(const Source& train);

// As the options say; "imagenet" and "given" measure nothing.
Normalizer MakeNormalizer(const Source& train, const DataOptions& options);

}  // namespace trireme
