#include "model/chunk_feed.h"

#include <algorithm>

namespace trireme {
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
                     int capacity, const LoaderThreads& threads, Engine& engine,
                     const ResidentSet* set)
    : size_(samples.size()),
      chunk_size_(chunk_size),
      capacity_(capacity),
      feed_(Feed::ForEvaluation(samples, normalizer)),
      slots_(engine, feed_, threads.first > 0 && size_ > capacity ? 2 : 1, size_t(capacity), set),
      loader_(feed_, slots_.slots(), set ? LoaderThreads{} : threads) {}

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

Batch ChunkFeed::BatchOf(const Filled& filled) const {
  Batch batch;
  slots_.Show(filled, batch);
  return batch;
}

}  // namespace trireme
