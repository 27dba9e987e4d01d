#include "model/evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/assert.h"
#include "base/label.h"
#include "strategy/step/tags.h"
#include "transport/collective/all_reduce.h"

namespace trireme {
namespace {

constexpr size_t kNumberSums = 5;  // of a chunk: samples, errors^2, |errors|, truths, truths^2

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

}  // namespace

Score::Score(int classes, int64_t num_chunks, const std::optional<TargetScale>& target)
    : classes_(classes),
      sums_(size_t(num_chunks) +
            (target ? kNumberSums * size_t(num_chunks) : 1 + size_t(classes) * classes)),
      num_chunks_(num_chunks),
      target_(target) {}

void Score::Add(int64_t chunk, std::span<const float> logits, std::span<const float> losses,
                std::span<const int32_t> labels) {
  TRIREME_ASSERT(logits.size() == labels.size() * classes_ && losses.size() == labels.size());
  for (const float loss : losses) sums_[chunk] += loss;
  if (target_) {
    AddNumbers(chunk, logits, labels);
  } else {
    AddClasses(logits, labels);
  }
}

void Score::AddNumbers(int64_t chunk, std::span<const float> outputs,
                       std::span<const int32_t> labels) {
  double* const sums = sums_.data() + num_chunks_ + kNumberSums * chunk;
  for (size_t i = 0; i < labels.size(); ++i) {
    const double truth = NumberOfLabel(labels[i]), error = outputs[i] - truth;
    sums[0] += 1;
    sums[1] += error * error;
    sums[2] += std::abs(error);
    sums[3] += truth;
    sums[4] += truth * truth;
  }
}

void Score::AddClasses(std::span<const float> logits, std::span<const int32_t> labels) {
  double* const top5 = sums_.data() + num_chunks_;
  double* const confusion = top5 + 1;
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto outputs = logits.subspan(i * classes_, classes_);
    const auto predicted = std::max_element(outputs.begin(), outputs.end()) - outputs.begin();
    *top5 += RankOfLabel(outputs, labels[i]) < 5;
    ++confusion[size_t(labels[i]) * classes_ + predicted];
  }
}

void Score::SumOver(Group& group) {
  // Exact: each chunk's sums are not zero on one rank only, and the rest are counts.
  AllReduceSum(group, kTagScore, sums_);
}

Evaluation Score::Result() const {
  Evaluation result = target_ ? NumberResult() : ClassResult();
  double loss = 0;
  for (int64_t i = 0; i < num_chunks_; ++i) loss += sums_[i];
  if (result.samples > 0) result.loss = loss / double(result.samples);
  return result;
}

// Networks learn standard numbers: these have a mean near 0, so that their squares lose nothing.
Evaluation Score::NumberResult() const {
  std::array<double, kNumberSums> all{};
  for (int64_t i = 0; i < num_chunks_; ++i) {
    for (size_t k = 0; k < all.size(); ++k) all[k] += sums_[num_chunks_ + kNumberSums * i + k];
  }
  const auto& [count, squares, absolutes, truths, truth_squares] = all;
  Evaluation result{.samples = int64_t(count)};
  result.errors.emplace();
  if (count == 0) return result;
  const double mean = truths / count, unit = target_->deviation;
  result.errors = {.samples = result.samples,
                   .squares = unit * unit * squares,
                   .absolutes = unit * absolutes,
                   .mean = target_->mean + unit * mean,
                   .spread = unit * unit * std::max(0.0, truth_squares - mean * truths)};
  return result;
}

Evaluation Score::ClassResult() const {
  Evaluation result;
  const double* confusion = sums_.data() + num_chunks_ + 1;
  int64_t correct = 0;
  for (int label = 0; label < classes_; ++label) {
    const double* row = confusion + size_t(label) * classes_;
    result.confusion.emplace_back(row, row + classes_);
    for (const int64_t count : result.confusion[label]) result.samples += count;
    correct += result.confusion[label][label];
  }
  if (result.samples == 0) return result;
  result.accuracy = double(correct) / double(result.samples);
  result.top5 = sums_[num_chunks_] / double(result.samples);
  return result;
}

int Evaluator::Capacity(const Engine& engine, const Graph& graph, const Source& samples) {
  return ChunkFeed::Capacity(ChunkFeed::ChunkSize(graph.input().size()),
                             engine.evaluation_samples(), samples.size());
}

Evaluator::Evaluator(const Graph& graph, Engine& engine, Queue& queue, const Source& samples,
                     const Normalizer& normalizer, const LoaderThreads& threads,
                     const ResidentSet* set)
    : samples_(samples),
      classes_(graph.num_classes()),
      target_(normalizer.target()),
      chunk_size_(ChunkFeed::ChunkSize(graph.input().size())),
      capacity_(Capacity(engine, graph, samples)),
      executable_(engine.Load(Compile(graph, engine, capacity_, Mode::kEvaluate, 0), queue)),
      logits_(engine.device(), size_t(capacity_) * classes_),
      probabilities_(engine.device(), logits_.size()),
      losses_(engine.device(), capacity_),
      tally_(classes_, samples.size()),
      mistakes_(classes_, target_),
      chunks_(samples, normalizer, chunk_size_, capacity_, threads, engine, set) {}

Evaluation Evaluator::Run(Slice state, int worker, int workers, Group* group,
                          const Observer& observer, int64_t step) {
  const int64_t num_chunks = (samples_.size() + chunk_size_ - 1) / chunk_size_;
  Score score(classes_, num_chunks, target_);
  tally_.Clear();
  mistakes_.Clear();
  if (worker >= 0) chunks_.Begin(worker, workers);
  for (int64_t done = 0; worker >= 0; ++done) {
    observer.Tell(Phase::kEvaluate, step, done);
    const Filled* const filled = chunks_.Next();
    if (!filled) break;
    const int count = filled->count;
    const Batch batch = chunks_.BatchOf(*filled);
    const std::span<const int32_t> labels = batch.labels;
    const auto logits = logits_.values().first(size_t(count) * classes_);
    const auto probabilities = probabilities_.values().first(logits.size());
    const auto losses = losses_.values().first(count);
    executable_->Evaluate(batch, state,
                          {.logits = logits, .probabilities = probabilities, .losses = losses});
    for (int at = 0; at < count; at += chunk_size_) {
      const size_t begin = size_t(at), size = size_t(std::min(chunk_size_, count - at));
      score.Add((filled->range.begin + at) / chunk_size_,
                logits.subspan(begin * classes_, size * classes_), losses.subspan(begin, size),
                labels.subspan(begin, size));
    }
    if (!target_) tally_.Add(probabilities, labels);
    mistakes_.Add(filled->range.begin, logits, probabilities, labels);
    chunks_.Release();
  }
  observer.Tell(Phase::kScore, step);
  if (group) score.SumOver(*group);
  return score.Result();
}

}  // namespace trireme
