#include "trainer/examiner.h"

#include <cmath>
#include <limits>

namespace trireme {
namespace {

LoaderThreads ThreadsFor(const Job& job, const Source& samples) {
  return EvaluationThreads(job.recipe.data, samples, job.cores_per_rank, job.threads_per_rank);
}

Residence PlaceFor(const Job& job, const Source* samples, Engine& engine) {
  if (!samples) return {};
  return PlaceSamples(*samples, engine, job.recipe.engine.samples_mb, int(job.trainers.size()));
}

}  // namespace

double Findings::Judged() const {
  const Evaluation& judge = validation ? *validation : test;
  if (!std::isfinite(judge.loss)) return std::numeric_limits<double>::quiet_NaN();
  return judge.errors ? -judge.errors->Rmse() : judge.accuracy;
}

bool Findings::Finite() const {
  return std::isfinite(test.loss) && (!validation || std::isfinite(validation->loss));
}

void Findings::AddTo(EpochRecord& record) const {
  record.test_loss = test.loss;
  if (validation) record.validation_loss = validation->loss;
  if (test.errors) {
    record.test_numbers = RecordOf(*test.errors);
    if (validation) record.validation_numbers = RecordOf(*validation->errors);
    return;
  }
  record.test_accuracy = test.accuracy;
  record.test_top5 = test.top5;
  if (validation) record.validation_accuracy = validation->accuracy;
}

Examiner::Examiner(const Job& job, Engine& engine, Queue& queue)
    : test_set_(PlaceFor(job, job.data.test.get(), engine)),
      validation_set_(PlaceFor(job, job.data.validation.get(), engine)),
      test_(job.graph, engine, queue, *job.data.test, job.normalizer,
            ThreadsFor(job, *job.data.test), test_set_.set.get()) {
  if (!job.data.validation) return;
  validation_.emplace(job.graph, engine, queue, *job.data.validation, job.normalizer,
                      ThreadsFor(job, *job.data.validation), validation_set_.set.get());
}

Findings Examiner::Run(Slice state, int worker, int workers, Group* group, const Observer& observer,
                       int64_t step) {
  Findings found;
  if (validation_)
    found.validation = validation_->Run(state, worker, workers, group, observer, step);
  found.test = test_.Run(state, worker, workers, group, observer, step);
  return found;
}

}  // namespace trireme
