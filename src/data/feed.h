#pragma once
#include <cstdint>
#include <span>

#include "base/label.h"
#include "data/augment.h"
#include "data/normalizer.h"
#include "data/options.h"
#include "data/order.h"
#include "data/source.h"

namespace trireme {

// The positions [begin, end) of an epoch.
struct Positions {
  int64_t epoch = 0;
  int64_t begin = 0;
  int64_t end = 0;

  int64_t count() const { return end - begin; }
  bool operator==(const Positions&) const = default;
};

// Host memory for samples, lent by the caller. They come in one of three forms: as values, the way
// a network sees them; as bytes and their changes, for whoever normalises and changes them itself
// (base/sample_change.h); as their numbers in the source and changes, where the bytes lie there
// already.
struct Slot {
  std::span<float> inputs;
  std::span<int32_t> labels;
  std::span<uint8_t> bytes = {};
  std::span<int32_t> numbers = {};
  std::span<SampleChange> changes = {};
  std::span<LabelMix> mixes = {};  // only where labels are mixed

  // So many of its samples, each of so many values.
  Slot Part(size_t first, size_t count, size_t values) const;
  size_t Room(size_t values) const;  // in samples
};

// What a network is shown at each position: all that decides it is here, and none of it is a rank
// or a thread. Every thread may call Fill. The source is borrowed.
class Feed {
 public:
  // Shuffled and augmented as the options say, by the seed.
  static Feed ForTraining(const Source& source, const Normalizer& normalizer,
                          const DataOptions& options, uint64_t seed);
  // Every sample as it is; the position is the index.
  static Feed ForEvaluation(const Source& source, const Normalizer& normalizer);

  int64_t size() const { return order_.size(); }
  const Order& order() const { return order_; }
  const SampleShape& shape() const { return source_->shape(); }
  const Source& source() const { return *source_; }
  const Normalizer& normalizer() const { return normalizer_; }
  bool changes() const { return augment_.active(); }  // else those of a slot are left as they are

  // Whether samples are mixed: then they come as values alone.
  bool mixes() const { return augment_.mixes(); }
  // And labels with them, which a slot says beside; labels that are numbers become one number.
  bool mixes_labels() const { return mixes() && !normalizer_.target(); }

  // Every sample takes so much longer to fetch, as if it were to be decoded (emulate.decode_ms).
  void PretendDecoding(double seconds_per_sample) { decode_s_ = seconds_per_sample; }
  bool decodes() const { return decode_s_ > 0 || source_->cuts(); }

  // Allocates nothing, unless the source does or pictures are mapped or mixed. Where `times` is not
  // null, the time it takes is added to it.
  void Fill(const Positions& range, const Slot& slot, FetchTimes* times = nullptr) const;
  // Of mixed samples the class of the larger share.
  void Fill(const Positions& range, float* inputs, int32_t* labels,
            FetchTimes* times = nullptr) const;

 private:
  struct Scratch;
  void Gather(int64_t epoch, std::span<const int64_t> samples, const Slot& slot,
              FetchTimes* times) const;
  void Change(int64_t epoch, std::span<const int64_t> samples, const Slot& slot, Scratch& scratch,
              FetchTimes* times) const;
  void Mix(int64_t epoch, std::span<const int64_t> samples, const Slot& slot, Scratch& scratch,
           FetchTimes* times) const;
  Feed(const Source& source, const Normalizer& normalizer, const Order& order, Augment augment);

  const Source* source_;
  Normalizer normalizer_;
  Order order_;
  Augment augment_;
  double decode_s_ = 0;
};

}  // namespace trireme
