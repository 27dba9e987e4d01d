#include "strategy/batch/alone.h"

#include "flat/arithmetic.h"
#include "flat/staging.h"

namespace trireme {

BatchAlone::BatchAlone(PortionGradient& portions, const Layout& layout, int num_portions,
                       int vectors, double decay)
    : portions_(portions),
      layout_(layout),
      num_portions_(num_portions),
      vectors_(portions.device(), portions.queue(), layout, {0, layout.weights}, vectors, decay),
      summand_(portions.device(), layout.summand) {
  seen_.statistics.resize(layout.state - layout.weights);
}

double BatchAlone::Evaluate(int point, int gradient) {
  Queue& queue = portions_.queue();
  const Slice sum = summand_;
  flat::Copy(queue, vectors_.at(point), portions_.state().Sub(0, layout_.weights));
  seen_.loss = seen_.correct = 0;
  int wanted = 0;
  for (int p = 0; p < num_portions_; ++p) {
    for (; wanted < num_portions_ && portions_.HasRoom(); ++wanted) portions_.Want(wanted);
    const PortionSums sums = portions_.Run(sum, p > 0);
    seen_.loss += sums.loss;
    seen_.correct += sums.correct;
  }
  flat::Copy(queue, sum.Sub(0, layout_.weights), vectors_.at(gradient));
  flat::GetNow(queue, sum.Sub(layout_.weights, seen_.statistics.size()), seen_.statistics);
  return seen_.loss + vectors_.AddPenalty(point, gradient);
}

void BatchAlone::Show(int vector, std::span<const float> statistics) {
  const Slice state = portions_.state();
  flat::Copy(portions_.queue(), vectors_.at(vector), state.Sub(0, layout_.weights));
  flat::PutNow(portions_.queue(), statistics, state.Sub(layout_.weights, statistics.size()));
}

}  // namespace trireme
