#include "trainer/predictor.h"

#include <algorithm>

#include "data/loader.h"
#include "flat/arithmetic.h"
#include "trainer/evaluation.h"

namespace trireme {
Predictor::Predictor(const SavedModel& model, Engine& engine)
    : model_(model),
      chunk_size_(Evaluator::ChunkSize(model.graph.input())),
      queue_(engine.device().NewQueue()),
      executable_(
          engine.Load(Compile(model.graph, engine, chunk_size_, Mode::kEvaluate, 0), *queue_)),
      state_(engine.device(), model.layout.state) {
  flat::Put(*queue_, model.state.data(), state_);
}

Predictor::~Predictor() { queue_->Sync(); }

void Predictor::Run(const Source& samples,
                    FunctionRef<void(int64_t index, const Prediction&)> use) {
  const size_t values = size_t(model_.card.shape.size()), classes = model_.card.classes.size();
  std::vector<float> inputs(chunk_size_ * values), logits(chunk_size_ * classes),
      shares(chunk_size_ * classes);
  std::vector<int32_t> labels(chunk_size_);
  Loader loader(Feed::ForEvaluation(samples, model_.card.normalizer), {{inputs, labels}}, 0);
  for (int64_t begin = 0; begin < samples.size(); begin += chunk_size_) {
    const int64_t end = std::min(begin + chunk_size_, samples.size());
    const auto count = size_t(end - begin);
    loader.Want({.epoch = 0, .begin = begin, .end = end});
    loader.Take();
    std::fill(labels.begin(), labels.end(), 0);  // unlabelled records: the loss is not asked for
    executable_->Evaluate({.inputs = std::span<const float>(inputs).first(count * values),
                           .labels = std::span<const int32_t>(labels).first(count),
                           .count = int(count)},
                          state_,
                          {.logits = std::span(logits).first(count * classes),
                           .probabilities = std::span(shares).first(count * classes)});
    loader.Release();
    for (size_t i = 0; i < count; ++i) {
      use(begin + int64_t(i), {std::span<const float>(logits).subspan(i * classes, classes),
                               std::span<const float>(shares).subspan(i * classes, classes)});
    }
  }
}

}  // namespace trireme
