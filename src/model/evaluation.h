#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/observer.h"
#include "data/normalizer.h"
#include "data/source.h"
#include "flat/host_memory.h"
#include "graph/engine.h"
#include "model/chunk_feed.h"
#include "model/mistakes.h"
#include "model/roc_tally.h"
#include "record/class_report.h"
#include "record/error_sums.h"
#include "transport/group.h"

namespace trireme {

// How well a state does on the test samples.
struct Evaluation {
  int64_t samples = 0;
  double loss = 0;                  // mean
  double accuracy = 0, top5 = 0;    // fractions
  Confusion confusion;              // [label][prediction]
  std::optional<ErrorSums> errors;  // where numbers are predicted: then there are no fractions
};

// What else is known of the samples of an evaluation.
struct EvaluationDetails {
  RocCurves roc;  // none where numbers are predicted
  std::vector<Mistake> mistakes;
};

// Adds up predictions. A single output is a number, of which `target` is the scale. Sums are kept
// per chunk of samples and added in chunk order, so the result has the same bits however the chunks
// were shared among ranks.
class Score {
 public:
  Score(int classes, int64_t num_chunks, const std::optional<TargetScale>& target = {});
  void Add(int64_t chunk, std::span<const float> logits, std::span<const float> losses,
           std::span<const int32_t> labels);
  void SumOver(Group& group);  // all ranks call it; all get the total
  Evaluation Result() const;

 private:
  void AddClasses(std::span<const float> logits, std::span<const int32_t> labels);
  void AddNumbers(int64_t chunk, std::span<const float> outputs, std::span<const int32_t> labels);
  Evaluation ClassResult() const;
  Evaluation NumberResult() const;

  int classes_;
  // Chunk losses; then top-5 hits and the confusion matrix, or what numbers sum up to by chunk.
  std::vector<double> sums_;
  int64_t num_chunks_;
  std::optional<TargetScale> target_;
};

// Runs the test samples through a program of its own. One thread.
class Evaluator {
 public:
  // `set`: the samples on the engine's device, if they lie there as long as this lives.
  Evaluator(const Graph& graph, Engine& engine, Queue& queue, const Source& samples,
            const Normalizer& normalizer, const LoaderThreads& threads = {},
            const ResidentSet* set = nullptr);

  // Samples that its program has room for: some chunks, as many as the engine is fast with.
  static int Capacity(const Engine& engine, const Graph& graph, const Source& samples);

  const Executable& executable() const { return *executable_; }
  // Worker w of n takes its turn (-1, a server: none); with a group the parts are added up. Each
  // sample once. `observer` is told what happens, after step `step`.
  Evaluation Run(Slice state, int worker = 0, int workers = 1, Group* group = nullptr,
                 const Observer& observer = {}, int64_t step = 0);

  // Of the last Run, at rank 0 of the group; all who took part in it call it.
  EvaluationDetails Details(Group* group = nullptr) const {
    return {target_ ? RocCurves() : tally_.Result(group), mistakes_.Result(group)};
  }
  const RocTally& tally() const { return tally_; }  // what this rank saw in the last Run

 private:
  const Source& samples_;
  const int classes_;
  const std::optional<TargetScale> target_;
  const int chunk_size_, capacity_;
  std::unique_ptr<Executable> executable_;
  const HostBuffer<float> logits_, probabilities_, losses_;
  RocTally tally_;
  MistakeTally mistakes_;
  ChunkFeed chunks_;
};

}  // namespace trireme
