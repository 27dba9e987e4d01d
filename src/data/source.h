#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/column_codes.h"
#include "data/fetch_times.h"
#include "data/framing.h"
#include "data/normalizer.h"
#include "data/sample.h"
#include "data/task.h"

namespace trireme {

// A list of samples of one shape, named by their index. Knows no order, epoch or rank.
// Immutable: every thread may call everything.
class Source {
 public:
  Source(const SampleShape& shape, int64_t size) : shape_(shape), size_(size) {}
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const SampleShape& shape() const { return shape_; }
  int64_t size() const { return size_; }

  // The class, or -1 where it is not known; of numbers to predict the bits of one (base/label.h).
  virtual int32_t label(int64_t index) const = 0;

  // What a sample is called where it comes from: a file's name, or its number from 0.
  virtual std::string NameOf(int64_t index) const;

  // The raw values; bytes as value / 255.
  virtual void Read(int64_t index, std::span<float> out) const = 0;

  // Many samples, normalised, one after the other, without allocating.
  virtual void Gather(std::span<const int64_t> indices, const Normalizer& normalizer, float* out,
                      int32_t* labels) const;

  // The sample as it is stored, before it is cut to the shape that is read.
  virtual SampleShape StoredShape(int64_t) const { return shape_; }

  // Whether its pictures have sizes of their own and are decoded and cut when they are read.
  virtual bool cuts() const { return false; }

  // As Gather, each picture cut as its framing says; only of a source that cuts. Where `times` is
  // not null, the time of some pictures is added to it: enough to tell the proportions.
  virtual void GatherFramed(std::span<const int64_t> indices, std::span<const Framing> framings,
                            const Normalizer& normalizer, float* out, int32_t* labels,
                            FetchTimes* times) const;

  // Whether it also gives its samples as bytes. Where it cuts, these are rounded: resizing makes
  // values between them.
  virtual bool has_bytes() const { return false; }

  // As Gather or GatherFramed, but the bytes of each sample, not normalised; only of a source that
  // has them. Framings only of one that cuts.
  virtual void GatherBytes(std::span<const int64_t> indices, std::span<const Framing> framings,
                           uint8_t* out, int32_t* labels, FetchTimes* times) const;

  // Adds the raw values of the samples to the statistics.
  virtual void Measure(std::span<const int64_t> indices, ChannelStatistics& statistics) const;

 private:
  SampleShape shape_;
  int64_t size_;
};

// Some samples of another source: a split, a limit.
class Subset : public Source {
 public:
  Subset(std::shared_ptr<const Source> whole, std::vector<int64_t> indices);

  int32_t label(int64_t index) const override { return whole_->label(indices_[index]); }
  std::string NameOf(int64_t index) const override { return whole_->NameOf(indices_[index]); }
  void Read(int64_t index, std::span<float> out) const override;
  void Gather(std::span<const int64_t> indices, const Normalizer& normalizer, float* out,
              int32_t* labels) const override;
  bool cuts() const override { return whole_->cuts(); }
  SampleShape StoredShape(int64_t index) const override {
    return whole_->StoredShape(indices_[index]);
  }
  void GatherFramed(std::span<const int64_t> indices, std::span<const Framing> framings,
                    const Normalizer& normalizer, float* out, int32_t* labels,
                    FetchTimes* times) const override;
  bool has_bytes() const override { return whole_->has_bytes(); }
  void GatherBytes(std::span<const int64_t> indices, std::span<const Framing> framings,
                   uint8_t* out, int32_t* labels, FetchTimes* times) const override;
  void Measure(std::span<const int64_t> indices, ChannelStatistics& statistics) const override;

 private:
  std::vector<int64_t> Mapped(std::span<const int64_t> indices) const;

  std::shared_ptr<const Source> whole_;  // shared by the training and the test part
  std::vector<int64_t> indices_;
};

// What the header of a csv file calls its columns; all empty: not known.
struct ColumnNames {
  std::vector<std::string> values;  // in the order of a sample's values
  std::string label;
  std::vector<std::string> ids;  // left out

  bool operator==(const ColumnNames&) const = default;
};

// What of an earlier run's data is to be kept; empty: as it comes.
struct KnownData {
  std::span<const std::string> classes = {};
  ColumnNames columns = {};
  ColumnCodes codes = {};
  std::optional<Task> task = {};
};

struct DataSet {
  std::string name;  // as it was asked for
  SampleShape shape;
  Task task = Task::kClassification;
  std::vector<std::string> classes;  // the label is the index; none where it is a number
  std::unique_ptr<Source> train, test;
  std::unique_ptr<Source> validation;  // what decides about the training; null: none
  ColumnNames columns;                 // of csv files
  ColumnCodes codes;                   // likewise
  std::string summary;                 // of how columns are understood; empty: as they are
  std::vector<std::string> left_out;   // what is wrong with each file that is not used
  std::vector<std::string> notes;      // what may be wrong with those that are, a sentence each

  // Of a network that learns it.
  int outputs() const { return task == Task::kRegression ? 1 : static_cast<int>(classes.size()); }
};

// "96 to train, 24 to validate, 30 to test"; a validation part only where there is one.
std::string PartsText(int64_t train, int64_t validation, int64_t test);

}  // namespace trireme
