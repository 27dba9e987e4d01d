#pragma once
#include <memory>
#include <string>

#include "base/options.h"
#include "data/source.h"
#include "flat/device.h"
#include "graph/engine.h"

namespace trireme {

// The samples of a source as bytes on a device, one after the other: a batch is then their numbers.
class ResidentSet {
 public:
  // A source that has bytes and does not cut. Blocks until they are there.
  ResidentSet(const Source& source, Device& device);
  static size_t BytesOf(const Source& source);

  Slice bytes() const { return bytes_; }

 private:
  const Buffer bytes_;
};

// How the samples of a source come to an engine.
struct Residence {
  std::unique_ptr<ResidentSet> set;  // null: they travel with each batch
  std::string text;                  // in words; empty: as values, like on every processor
};

// They lie on the device if they are bytes that need no decoding, and no more than
// engine.samples_mb allows: "auto" is kResidentShare of what is free there now, divided by the
// `ranks` of the machine, which may share the device.
constexpr double kResidentShare = 0.25;
Residence PlaceSamples(const Source& source, Engine& engine, const IntOrWord& samples_mb,
                       int ranks);

}  // namespace trireme
