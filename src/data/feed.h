#pragma once
#include <cstdint>

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

  // Every sample takes so much longer to fetch, as if it were to be decoded (emulate.decode_ms).
  void PretendDecoding(double seconds_per_sample) { decode_s_ = seconds_per_sample; }
  bool decodes() const { return decode_s_ > 0 || source_->cuts(); }

  // Allocates nothing, unless the source does. Where `times` is not null, the time it takes is
  // added to it.
  void Fill(const Positions& range, float* inputs, int32_t* labels,
            FetchTimes* times = nullptr) const;

 private:
  void Gather(int64_t epoch, std::span<const int64_t> samples, float* inputs, int32_t* labels,
              FetchTimes* times) const;
  Feed(const Source& source, const Normalizer& normalizer, const Order& order, Augment augment);

  const Source* source_;
  Normalizer normalizer_;
  Order order_;
  Augment augment_;
  double decode_s_ = 0;
};

}  // namespace trireme
