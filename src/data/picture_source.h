#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "data/framing.h"
#include "data/options.h"
#include "data/source.h"
#include "image/decoder.h"
#include "image/renderer.h"

namespace trireme {

// Opens the pictures of a source one after the other. One thread.
class PictureReader {
 public:
  virtual ~PictureReader() = default;
  virtual void Fetch(int64_t index) = 0;  // brings its bytes into memory: what a disk is waited for
  virtual Decoder& Open() = 0;            // the fetched one, valid until the next is fetched
};

// Pictures that are decoded when they are read: nothing of them is kept in memory. RGB, square.
class PictureSource : public Source {
 public:
  PictureSource(const DataOptions& options, int64_t size);

  bool cuts() const override { return true; }
  virtual std::unique_ptr<PictureReader> NewReader() const = 0;

  SampleShape StoredShape(int64_t index) const override;
  // The square in the middle.
  void Read(int64_t index, std::span<float> out) const override;
  void Gather(std::span<const int64_t> indices, const Normalizer& normalizer, float* out,
              int32_t* labels) const override;
  void GatherFramed(std::span<const int64_t> indices, std::span<const Framing> framings,
                    const Normalizer& normalizer, float* out, int32_t* labels,
                    FetchTimes* times) const override;
  bool has_bytes() const override { return true; }
  void GatherBytes(std::span<const int64_t> indices, std::span<const Framing> framings,
                   uint8_t* out, int32_t* labels, FetchTimes* times) const override;
  // Decoding all would take as long as an epoch: some hundred tell enough.
  void Measure(std::span<const int64_t> indices, ChannelStatistics& statistics) const override;

  // By some that are looked at: small pictures, of at most 64 pixels, are seen whole at their
  // shorter side; of others three quarters of it, in steps of 16 pixels, if that is less than
  // usual: what is cut out of a picture is then not enlarged much.
  OwnSize FindOwnSize() const;

 private:
  // Of one picture after the other: draw(renderer, i, picture, view, decode_s).
  template <class F>
  void ForEach(std::span<const int64_t> indices, std::span<const Framing> framings, int32_t* labels,
               FetchTimes* times, const F& draw) const;

  const double centre_;
};

}  // namespace trireme
