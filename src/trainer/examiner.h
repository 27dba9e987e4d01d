#pragma once
#include <memory>
#include <optional>

#include "model/evaluation.h"
#include "model/resident_set.h"
#include "record/metrics.h"
#include "trainer/job.h"

namespace trireme {

// How well a state does on the parts of the data that are not trained on.
struct Findings {
  Evaluation test;
  std::optional<Evaluation> validation;  // where the data have such a part

  // What decides about the training (best, patience, target): the validation part where there is
  // one, else the test part: the accuracy, or the negative RMSE of numbers. Not a number where the
  // loss is not finite.
  double Judged() const;
  bool Finite() const;  // all losses
  void AddTo(EpochRecord& record) const;
};

// Evaluates both parts. One thread.
class Examiner {
 public:
  Examiner(const Job& job, Engine& engine, Queue& queue);

  // See Evaluator::Run.
  Findings Run(Slice state, int worker = 0, int workers = 1, Group* group = nullptr,
               const Observer& observer = {}, int64_t step = 0);
  // Of the test part; see Evaluator::Details.
  EvaluationDetails Details(Group* group = nullptr) const { return test_.Details(group); }

 private:
  const Residence test_set_, validation_set_;
  Evaluator test_;
  std::optional<Evaluator> validation_;
};

}  // namespace trireme
