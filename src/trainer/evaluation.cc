#include "trainer/evaluation.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace trireme {
namespace {

// How many classes stand before the label when outputs are sorted; the first of equals wins, and
// an output that is not a number stands last.
int RankOfLabel(std::span<const float> outputs, int label) {
  const float own = outputs[label];
  if (std::isnan(own)) return int(outputs.size());
  int rank = 0;
  for (int i = 0; i < int(outputs.size()); ++i) {
    rank += outputs[i] > own || (outputs[i] == own && i < label);
  }
  return rank;
}

constexpr Tag kScoreTag = 0x5c08e;

}  // namespace

std::vector<double> Evaluation::ClassAccuracy() const {
  std::vector<double> shares(classes);
  for (int label = 0; label < classes; ++label) {
    int64_t all = 0;
    for (int p = 0; p < classes; ++p) all += confusion[size_t(label) * classes + p];
    if (all) shares[label] = double(confusion[size_t(label) * classes + label]) / double(all);
  }
  return shares;
}

Score::Score(int classes, int64_t num_chunks)
    : classes_(classes),
      sums_(size_t(num_chunks) + 1 + size_t(classes) * classes),
      num_chunks_(num_chunks) {}

void Score::Add(int64_t chunk, std::span<const float> logits, std::span<const float> losses,
                std::span<const int32_t> labels) {
  TRIREME_ASSERT(logits.size() == labels.size() * classes_ && losses.size() == labels.size());
  double* const top5 = sums_.data() + num_chunks_;
  double* const confusion = top5 + 1;
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto outputs = logits.subspan(i * classes_, classes_);
    const auto predicted = std::max_element(outputs.begin(), outputs.end()) - outputs.begin();
    sums_[chunk] += losses[i];
    *top5 += RankOfLabel(outputs, labels[i]) < 5;
    ++confusion[size_t(labels[i]) * classes_ + predicted];
  }
}

void Score::SumOver(Group& group) {
  if (group.size() == 1) return;
  const auto bytes = std::as_writable_bytes(std::span(sums_));
  if (group.rank() != 0) {
    group.Send(0, kScoreTag, bytes).Wait();
    group.Receive(0, kScoreTag, bytes).Wait();
    return;
  }
  std::vector<double> other(sums_.size());
  for (int rank = 1; rank < group.size(); ++rank) {
    group.Receive(rank, kScoreTag, std::as_writable_bytes(std::span(other))).Wait();
    for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += other[i];
  }
  for (int rank = 1; rank < group.size(); ++rank) group.Send(rank, kScoreTag, bytes).Wait();
}

Evaluation Score::Result() const {
  Evaluation result;
  result.classes = classes_;
  double loss = 0;
  for (int64_t i = 0; i < num_chunks_; ++i) loss += sums_[i];
  const double* confusion = sums_.data() + num_chunks_ + 1;
  int64_t correct = 0;
  for (int label = 0; label < classes_; ++label) {
    for (int p = 0; p < classes_; ++p) {
      const auto count = int64_t(confusion[size_t(label) * classes_ + p]);
      result.confusion.push_back(count);
      result.samples += count;
      if (p == label) correct += count;
    }
  }
  if (result.samples == 0) return result;
  result.loss = loss / double(result.samples);
  result.accuracy = double(correct) / double(result.samples);
  result.top5 = sums_[num_chunks_] / double(result.samples);
  return result;
}

Evaluator::Evaluator(const Graph& graph, Engine& engine, Queue& queue, const Source& samples,
                     const Normalizer& normalizer)
    : samples_(samples),
      classes_(graph.num_classes()),
      executable_(engine.Load(Compile(graph, engine, kChunk, Mode::kEvaluate, 0), queue)),
      inputs_(size_t(kChunk) * graph.input().size()),
      logits_(size_t(kChunk) * classes_),
      losses_(kChunk),
      labels_(kChunk),
      loader_(Feed::ForEvaluation(samples, normalizer), {{inputs_, labels_}}, /*threads=*/0) {}

Evaluation Evaluator::Run(Slice state, int worker, int workers, Group* group) {
  const int64_t num_chunks = (samples_.size() + kChunk - 1) / kChunk;
  Score score(classes_, num_chunks);
  for (int64_t chunk = worker; chunk < num_chunks; chunk += workers) {
    const int64_t begin = chunk * kChunk, end = std::min(begin + kChunk, samples_.size());
    const int count = int(end - begin);
    loader_.Want({.epoch = 0, .begin = begin, .end = end});
    loader_.Take();
    const auto labels = std::span<const int32_t>(labels_).first(count);
    const auto logits = std::span(logits_).first(size_t(count) * classes_);
    const auto losses = std::span(losses_).first(count);
    executable_->Evaluate({.inputs = inputs_, .labels = labels, .count = count}, state,
                          {.logits = logits, .losses = losses});
    loader_.Release();
    score.Add(chunk, logits, losses, labels);
  }
  if (group) score.SumOver(*group);
  return score.Result();
}

}  // namespace trireme
