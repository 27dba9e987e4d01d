#include "model/resident_set.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/text.h"
#include "flat/arithmetic.h"
#include "flat/host_memory.h"

namespace trireme {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 24;

size_t FloatsFor(size_t bytes) { return (bytes + sizeof(float) - 1) / sizeof(float); }

std::string Text(size_t bytes) { return FormatBytes(double(bytes)); }

}  // namespace

size_t ResidentSet::BytesOf(const Source& source) {
  return size_t(source.size()) * size_t(source.shape().size());
}

ResidentSet::ResidentSet(const Source& source, Device& device)
    : bytes_(device, FloatsFor(BytesOf(source))) {
  // Whole floats at a time: four samples are some, however long one is.
  const size_t sample = size_t(source.shape().size());
  const size_t at_once = std::max<size_t>(4, kPieceBytes / sample / 4 * 4);
  const auto queue = device.NewQueue();
  const auto size = size_t(source.size());
  const HostBuffer<float> piece(device, FloatsFor(std::min(at_once, size) * sample));
  std::vector<int64_t> indices;
  std::vector<int32_t> labels(std::min(at_once, size));
  for (size_t begin = 0; begin < size; begin += at_once) {
    const size_t count = std::min(at_once, size - begin);
    indices.resize(count);
    for (size_t i = 0; i < count; ++i) indices[i] = int64_t(begin + i);
    source.GatherBytes(indices, {}, reinterpret_cast<uint8_t*>(piece.data()), labels.data(),
                       nullptr);
    const size_t floats = FloatsFor(count * sample);
    flat::Put(*queue, piece.values().first(floats),
              bytes_.slice().Sub(begin * sample / sizeof(float), floats));
    queue->Sync();
  }
}

Residence PlaceSamples(const Source& source, Engine& engine, const IntOrWord& samples_mb,
                       int ranks) {
  if (!engine.takes_bytes()) return {};
  if (!source.has_bytes()) return {nullptr, "samples travel as float32: they are not bytes"};
  if (source.cuts()) return {nullptr, "samples travel as bytes, decoded for each step"};
  Device& device = engine.device();
  const size_t bytes = ResidentSet::BytesOf(source);
  const double free = double(device.free_bytes());
  const double most = samples_mb.is_word() ? kResidentShare * free / std::max(1, ranks)
                                           : std::min(free, double(samples_mb.number) * 1e6);
  // A batch names them by int32.
  if (double(bytes) <= most && source.size() <= std::numeric_limits<int32_t>::max()) {
    return {std::make_unique<ResidentSet>(source, device),
            fmt::format("{} samples ({}) lie on {}; a batch is their numbers",
                        FormatCount(source.size()), Text(bytes), device.name())};
  }
  const std::string rule =
      samples_mb.is_word()
          ? fmt::format("\"{}\": a quarter of what is free on {}, for {}", samples_mb.word,
                        device.name(), Counted(std::max(1, ranks), "rank"))
          : fmt::format("{}", samples_mb.number);
  return {nullptr,
          fmt::format("samples travel as bytes: {} are more than the {} that may lie on {} "
                      "(engine.samples_mb = {})",
                      Text(bytes), Text(size_t(most)), device.name(), rule)};
}

}  // namespace trireme
