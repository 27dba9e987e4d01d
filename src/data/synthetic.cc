#include "data/synthetic.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/random.h"

namespace trireme {
namespace {

constexpr int kPatches = 8;  // along each side
constexpr int64_t kMeasuredValues = int64_t{1} << 23;
constexpr int64_t kMaxSide = 16'384;
constexpr int64_t kMaxValues = int64_t{1} << 28;
constexpr int64_t kMaxClasses = 65'536;
constexpr int64_t kMaxSamples = int64_t{1} << 40;

class SyntheticSource : public Source {
 public:
  SyntheticSource(const SampleShape& shape, int64_t num_classes, int64_t size, uint64_t part)
      : Source(shape, size), num_classes_(num_classes), part_(part) {}

  int32_t label(int64_t index) const override { return static_cast<int32_t>(index % num_classes_); }

  void Read(int64_t index, std::span<float> out) const override {
    const uint64_t pattern = Hash(num_classes_, label(index));
    const int height = shape().height;
    const int rows = std::min(kPatches, height);
    const ptrdiff_t row_values = static_cast<ptrdiff_t>(out.size()) / height;
    for (int row = 0; row < rows; ++row) {
      const int first = row * height / rows;
      float* const levels = out.data() + first * row_values;
      FillLevels(Hash(pattern, row), levels);
      for (int y = first + 1; y < (row + 1) * height / rows; ++y) {
        std::copy_n(levels, row_values, out.data() + y * row_values);
      }
    }
    AddNoise(Hash(part_, static_cast<uint64_t>(index)), out);
  }

  // All are made alike, so a few tell enough.
  void Measure(std::span<const int64_t> indices, ChannelStatistics& statistics) const override {
    const auto enough = static_cast<size_t>(1 + kMeasuredValues / shape().size());
    Source::Measure(indices.first(std::min(indices.size(), enough)), statistics);
  }

 private:
  // One line of pixels: a level in [0, 0.5) per patch and channel.
  void FillLevels(uint64_t key, float* line) const {
    const auto [height, width, channels] = shape();
    const int columns = std::min(kPatches, width);
    for (int column = 0; column < columns; ++column) {
      const int begin = column * width / columns;
      for (int c = 0; c < channels; ++c) {
        const uint64_t bits = Hash(key, column, c);
        line[ptrdiff_t{begin} * channels + c] = static_cast<float>(bits >> 40) * 0x1p-25f;
      }
      for (ptrdiff_t i = ptrdiff_t{begin + 1} * channels;
           i < ptrdiff_t{(column + 1) * width / columns} * channels; ++i) {
        line[i] = line[i - channels];
      }
    }
  }

  // Uniform in [0, 0.5); one hash serves four values.
  static void AddNoise(uint64_t key, std::span<float> out) {
    for (size_t i = 0; i < out.size(); i += 4) {
      uint64_t bits = Hash(key + i);
      const size_t end = std::min(i + 4, out.size());
      for (size_t j = i; j < end; ++j, bits >>= 16) {
        out[j] += static_cast<float>(static_cast<int>(bits & 0xffff)) * 0x1p-17f;
      }
    }
  }

  int64_t num_classes_;
  uint64_t part_;
};

// Numbers separated by `separators`, nothing else.
class Numbers {
 public:
  explicit Numbers(std::string_view text) : text_(text), rest_(text) {}

  int64_t Next(const char* what, int64_t least, int64_t most, std::string_view separator) {
    int64_t value = 0;
    const char* const end = rest_.data() + rest_.size();
    const auto parsed = std::from_chars(rest_.data(), end, value);
    rest_.remove_prefix(static_cast<size_t>(parsed.ptr - rest_.data()));
    const bool separated = separator.empty() ? rest_.empty() : rest_.starts_with(separator);
    if (parsed.ec == std::errc::result_out_of_range) value = most + 1;
    if (parsed.ec == std::errc::invalid_argument || !separated) {
      throw UsageError(
          "synthetic:{}: expected synthetic:HxWxC:CLASSES:N, as in synthetic:28x28x1:10:60000",
          text_);
    }
    if (value < least || value > most) {
      throw UsageError("synthetic:{}: {} must be between {} and {}", text_, what, least, most);
    }
    rest_.remove_prefix(separator.size());
    return value;
  }

 private:
  std::string_view text_, rest_;
};

}  // namespace

DataSet OpenSynthetic(const std::string& argument) {
  Numbers numbers(argument);
  SampleShape shape;
  shape.height = static_cast<int>(numbers.Next("the height", 1, kMaxSide, "x"));
  shape.width = static_cast<int>(numbers.Next("the width", 1, kMaxSide, "x"));
  shape.channels = static_cast<int>(numbers.Next("the number of channels", 1, kMaxSide, ":"));
  const int64_t num_classes = numbers.Next("the number of classes", 2, kMaxClasses, ":");
  const int64_t size = numbers.Next("the number of samples", 1, kMaxSamples, "");
  if (shape.size() > kMaxValues) {
    throw UsageError("synthetic:{}: a sample has more than {} values", argument, kMaxValues);
  }
  DataSet data{.shape = shape};
  for (int64_t i = 0; i < num_classes; ++i) data.classes.push_back(std::to_string(i));
  data.train = std::make_unique<SyntheticSource>(shape, num_classes, size, /*part=*/0);
  data.test = std::make_unique<SyntheticSource>(shape, num_classes, std::max<int64_t>(1, size / 5),
                                                /*part=*/1);
  return data;
}

}  // namespace trireme
