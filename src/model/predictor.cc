#include "model/predictor.h"

#include <algorithm>

#include "flat/staging.h"
#include "model/chunk_feed.h"

namespace trireme {
Predictor::Predictor(const SavedModel& model, Engine& engine)
    : model_(model),
      engine_(engine),
      capacity_(
          std::max(ChunkFeed::ChunkSize(model.graph.input().size()), engine.evaluation_samples())),
      queue_(engine.device().NewQueue()),
      executable_(
          engine.Load(Compile(model.graph, engine, capacity_, Mode::kEvaluate, 0), *queue_)),
      state_(engine.device(), model.layout.state) {
  flat::PutNow(*queue_, model.state, state_);
}

Predictor::~Predictor() { queue_->Sync(); }

void Predictor::Run(const Source& samples,
                    FunctionRef<void(int64_t index, const Prediction&)> use) {
  const auto classes = size_t(model_.card.outputs());
  Device& device = queue_->device();
  const HostBuffer<float> logits(device, capacity_ * classes);
  const HostBuffer<float> shares(device, capacity_ * classes);
  // Unlabelled records: the loss is not asked for.
  const HostBuffer<int32_t> labels(device, capacity_);
  ChunkFeed chunks(samples, model_.card.normalizer, capacity_, capacity_,
                   EvaluationThreads(model_.recipe, samples), engine_);
  chunks.Begin();
  while (const Filled* filled = chunks.Next()) {
    const int64_t begin = filled->range.begin;
    const auto count = size_t(filled->count);
    Batch batch = chunks.BatchOf(*filled);
    batch.labels = labels.values().first(count);
    executable_->Evaluate(batch, state_,
                          {.logits = logits.values().first(count * classes),
                           .probabilities = shares.values().first(count * classes)});
    chunks.Release();
    for (size_t i = 0; i < count; ++i) {
      use(begin + int64_t(i), {logits.values().subspan(i * classes, classes),
                               shares.values().subspan(i * classes, classes)});
    }
  }
}

}  // namespace trireme
