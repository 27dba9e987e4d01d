#include "data/given.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/label.h"
#include "data/memory_source.h"

namespace trireme {
namespace {

constexpr int64_t kMostValues = int64_t{1} << 31;  // of a sample

void CheckShape(const SampleShape& shape) {
  const auto [height, width, channels] = shape;
  if (height < 1 || width < 1 || channels < 1) {
    throw UsageError("a shape of {}x{}x{} holds no sample; height, width and channels count from 1",
                     height, width, channels);
  }
  if (double(height) * double(width) * double(channels) > double(kMostValues)) {
    throw UsageError("a sample of {}x{}x{} has too many values; {} are the most", height, width,
                     channels, kMostValues);
  }
}

// Samples of the part.
int64_t CountSamples(const SampleShape& shape, const GivenPart& part, const std::string& what) {
  if (!part.values.empty() && !part.bytes.empty()) {
    throw UsageError("{} have values and bytes; give one of them", what);
  }
  const size_t count = part.values.empty() ? part.bytes.size() : part.values.size();
  if (count == 0) throw UsageError("{} have no values", what);
  if (count % size_t(shape.size()) != 0) {
    throw UsageError("{} have {} values, no multiple of {} ({}x{}x{})", what, count, shape.size(),
                     shape.height, shape.width, shape.channels);
  }
  return int64_t(count) / shape.size();
}

void CheckFinite(const SampleShape& shape, std::span<const float> values, const std::string& what) {
  const auto bad = std::ranges::find_if(values, [](float v) { return !std::isfinite(v); });
  if (bad == values.end()) return;
  const int64_t at = bad - values.begin();
  throw UsageError("value {} of sample {} {} is {}; all must be finite", at % shape.size(),
                   at / shape.size(), what, *bad);
}

std::unique_ptr<Source> Borrow(const SampleShape& shape, const GivenPart& part,
                               std::vector<int32_t> labels) {
  if (!part.bytes.empty()) {
    return std::make_unique<ByteSource>(shape, part.bytes, std::move(labels));
  }
  return std::make_unique<FloatSource>(shape, part.values, std::move(labels));
}

struct NamedPart {
  const GivenPart& part;
  const char* what;  // "to train"
};

Task TaskOf(const GivenPart& part, const char* what) {
  if (part.labels.empty() == part.numbers.empty()) {
    throw UsageError("the samples {} need either labels or numbers{}", what,
                     part.labels.empty() ? "" : "; they have both");
  }
  return part.labels.empty() ? Task::kRegression : Task::kClassification;
}

// The labels of a part on their way to the loss (base/label.h).
std::vector<int32_t> LabelsOf(const SampleShape& shape, const NamedPart& named, size_t classes) {
  const auto& [part, what] = named;
  const int64_t samples = CountSamples(shape, part, fmt::format("the samples {}", what));
  CheckFinite(shape, part.values, what);
  const size_t labels = std::max(part.labels.size(), part.numbers.size());
  if (int64_t(labels) != samples) {
    throw UsageError("there are {} samples {}, but {} labels", samples, what, labels);
  }
  for (size_t i = 0; i < part.labels.size(); ++i) {
    if (part.labels[i] >= 0 && size_t(part.labels[i]) < classes) continue;
    throw UsageError("the label of sample {} {} is {}; with {} classes labels are 0 to {}", i, what,
                     part.labels[i], classes, classes - 1);
  }
  CheckFinite({1, 1, 1}, part.numbers, what);
  if (part.numbers.empty()) return {part.labels.begin(), part.labels.end()};
  std::vector<int32_t> bits(part.numbers.size());
  std::ranges::transform(part.numbers, bits.begin(), LabelOfNumber);
  return bits;
}

std::vector<std::string> ClassesOf(const GivenSamples& given) {
  if (!given.classes.empty()) return given.classes;
  constexpr int kMost = 1 << 20;  // a label beyond it is a mistake, not a class
  int32_t most = 0;
  for (const GivenPart* part : {&given.train, &given.validation, &given.test}) {
    for (const int32_t label : part->labels) most = std::max(most, label);
  }
  std::vector<std::string> names;
  for (int32_t c = 0; c <= std::min(most, kMost); ++c) names.push_back(std::to_string(c));
  return names;
}

}  // namespace

DataSet OpenGiven(const GivenSamples& given, const DataOptions& options) {
  CheckShape(given.shape);
  DataSet data{.name = kGivenSource, .shape = given.shape};
  if (given.train.empty()) throw UsageError("there are no samples to train");
  data.task = TaskOf(given.train, "to train");
  const char* const wanted = NameOf(data.task);
  if (options.task != DataOptions{}.task && options.task != wanted) {
    throw UsageError("data.task = {}, but the samples have {}", options.task,
                     data.task == Task::kRegression ? "numbers" : "labels");
  }
  if (data.task == Task::kClassification) {
    data.classes = ClassesOf(given);
  } else if (!given.classes.empty()) {
    throw UsageError("the samples have numbers to predict, and so no names of classes");
  }
  const auto open = [&](const GivenPart& part, const char* what) -> std::unique_ptr<Source> {
    if (part.empty()) return nullptr;
    if (TaskOf(part, what) != data.task) {
      throw UsageError("the samples {} and those to train need the same: labels or numbers", what);
    }
    return Borrow(given.shape, part, LabelsOf(given.shape, {part, what}, data.classes.size()));
  };
  data.train = open(given.train, "to train");
  data.validation = open(given.validation, "to validate");
  data.test = open(given.test, "to test");
  return data;
}

std::unique_ptr<Source> OpenGivenValues(const SampleShape& shape, const GivenPart& part,
                                        const std::string& what) {
  const int64_t samples = CountSamples(shape, part, what);
  CheckFinite(shape, part.values, "to predict");
  return Borrow(shape, part, std::vector<int32_t>(size_t(samples), -1));
}

}  // namespace trireme
