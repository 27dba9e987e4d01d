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

ChunkFeed::ChunkFeed(const Source& samples, const Normalizer& normalizer, int chunk_size,
                     const LoaderThreads& threads, Device& device)
    : size_(samples.size()),
      chunk_size_(chunk_size),
      values_(size_t(samples.shape().size())),
      slots_(threads.first > 0 && size_ > chunk_size ? 2 : 1),
      inputs_(device, slots_ * size_t(chunk_size) * values_),
      labels_(device, slots_ * size_t(chunk_size)),
      loader_(Feed::ForEvaluation(samples, normalizer), CutSlots(inputs_, labels_, slots_),
              threads) {}

void ChunkFeed::Begin(int64_t first, int64_t stride) {
  wanted_ = first;
  stride_ = stride;
  loader_.Pause();
}

const Filled* ChunkFeed::Next() {
  const int64_t chunks = (size_ + chunk_size_ - 1) / chunk_size_;
  for (; wanted_ < chunks && loader_.HasRoom(); wanted_ += stride_, ++open_) {
    const int64_t begin = wanted_ * chunk_size_;
    loader_.Want({.epoch = 0, .begin = begin, .end = std::min(begin + chunk_size_, size_)});
  }
  if (open_ == 0) return nullptr;
  const Filled& filled = loader_.Take();
  --open_;
  return &filled;
}

std::span<const float> ChunkFeed::inputs(const Filled& filled) const {
  return inputs_.values().subspan(filled.slot * size_t(chunk_size_) * values_,
                                  size_t(filled.count) * values_);
}

std::span<const int32_t> ChunkFeed::labels(const Filled& filled) const {
  return labels_.values().subspan(filled.slot * size_t(chunk_size_), size_t(filled.count));
}

}  // namespace trireme
