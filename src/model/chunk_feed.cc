#include "model/chunk_feed.h"

#include <algorithm>

namespace trireme {
namespace {

std::vector<Slot> CutSlots(std::span<float> inputs, std::span<int32_t> labels, int slots) {
  std::vector<Slot> all;
  const size_t values = inputs.size() / slots, samples = labels.size() / slots;
  for (int i = 0; i < slots; ++i) {
    all.push_back({inputs.subspan(i * values, values), labels.subspan(i * samples, samples)});
  }
  return all;
}

}  // namespace

LoaderThreads EvaluationThreads(const DataOptions& options, const Source& samples, int cores,
                                int computing) {
  const int64_t values = samples.shape().size();
  return ChooseLoaderThreads(options.threads, ChunkFeed::ChunkSize(values) * values, cores,
                             computing, samples.cuts());
}

LoaderThreads EvaluationThreads(const Recipe& recipe, const Source& samples) {
  return EvaluationThreads(recipe.data, samples, CountThreads(TrainerOptions{}),
                           CountThreads(recipe.trainer));
}

int ChunkFeed::ChunkSize(int64_t values) {
  constexpr int64_t kFloats = 1 << 20;  // of samples: their activations are some ten times that
  return int(std::clamp<int64_t>(kFloats / values, 1, 100));
}

int ChunkFeed::Capacity(int chunk_size, int wanted, int64_t samples) {
  const int64_t most = (samples + chunk_size - 1) / chunk_size;
  const int64_t chunks = (wanted + chunk_size - 1) / chunk_size;
  return int(std::clamp<int64_t>(chunks, 1, std::max<int64_t>(1, most)) * chunk_size);
}

ChunkFeed::ChunkFeed(const Source& samples, const Normalizer& normalizer, int chunk_size,
                     int capacity, const LoaderThreads& threads, Device& device)
    : size_(samples.size()),
      chunk_size_(chunk_size),
      capacity_(capacity),
      values_(size_t(samples.shape().size())),
      slots_(threads.first > 0 && size_ > capacity ? 2 : 1),
      inputs_(device, slots_ * size_t(capacity) * values_),
      labels_(device, slots_ * size_t(capacity)),
      loader_(Feed::ForEvaluation(samples, normalizer), CutSlots(inputs_, labels_, slots_),
              threads) {}

void ChunkFeed::Begin(int64_t worker, int64_t workers) {
  at_once_ = Capacity(chunk_size_, capacity_, (size_ + workers - 1) / workers);
  wanted_ = worker;
  stride_ = workers;
  loader_.Pause();
}

const Filled* ChunkFeed::Next() {
  for (; wanted_ * at_once_ < size_ && loader_.HasRoom(); wanted_ += stride_, ++open_) {
    const int64_t begin = wanted_ * at_once_;
    loader_.Want({.epoch = 0, .begin = begin, .end = std::min(begin + at_once_, size_)});
  }
  if (open_ == 0) return nullptr;
  const Filled& filled = loader_.Take();
  --open_;
  return &filled;
}

std::span<const float> ChunkFeed::inputs(const Filled& filled) const {
  return inputs_.values().subspan(filled.slot * size_t(capacity_) * values_,
                                  size_t(filled.count) * values_);
}

std::span<const int32_t> ChunkFeed::labels(const Filled& filled) const {
  return labels_.values().subspan(filled.slot * size_t(capacity_), size_t(filled.count));
}

}  // namespace trireme
