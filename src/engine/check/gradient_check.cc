#include "engine/check/gradient_check.h"

#include <fmt/core.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/check/compare.h"
#include "engine/ref/engine.h"
#include "engine/ref/runner.h"
#include "graph/layout.h"
#include "graph/program.h"

namespace trireme::check {
namespace {

// The loss as a function of the state.
class Loss {
 public:
  Loss(const Graph& graph, const GradientOptions& options)
      : program_(*Compile(graph, RefEngine(options.fusions), options.count, Mode::kTrain, 1)),
        forward_(program_),
        inputs_(RandomFloats(options.seed, size_t(options.count * graph.input().size()))),
        labels_(RandomLabels(options.seed, size_t(options.count), graph.num_classes())),
        class_weights_(options.class_weights) {
    if (options.mixed) {
      mixes_ = RandomMixes(options.seed + 1, size_t(options.count), graph.num_classes());
    }
    std::erase_if(forward_.instructions, [](const Instruction& i) { return i.backward; });
    batch_ = {.inputs = inputs_,
              .labels = labels_,
              .count = options.count,
              .mixes = mixes_,
              .class_weights = class_weights_,
              .loss_scale = 1.0f / float(options.count),
              .random_key = options.seed};
  }

  const Layout& layout() const { return program_.layout; }

  std::vector<double> Gradient(const std::vector<double>& state) { return Run(program_, state); }
  double At(const std::vector<double>& state) { return Run(forward_, state)[layout().loss()]; }

 private:
  const std::vector<double>& Run(const Program& program, const std::vector<double>& state) {
    summand_.resize(layout().summand);
    ref::Runner(program).Run(batch_, state, summand_, false);
    return summand_;
  }

  Program program_, forward_;
  std::vector<float> inputs_;
  std::vector<int32_t> labels_;
  std::vector<float> class_weights_;
  std::vector<LabelMix> mixes_;
  Batch batch_;
  std::vector<double> summand_;
};

// A state away from the special points of the initial one (biases at 0 let units die).
std::vector<double> MakeState(const Graph& graph, const Layout& layout, uint64_t seed) {
  std::vector<double> state = Widen(InitialState(graph, layout, seed));
  const Random random(HashKey(seed, 1));
  for (size_t i = 0; i < layout.weights; ++i) state[i] += 0.1 * random.Normal(i);
  return state;
}

// The slope along `direction` (a list of places and shares) by central differences.
struct Share {
  size_t place;
  double share;
};

testing::AssertionResult Along(Loss& loss, std::vector<double>& state,
                               const std::vector<double>& gradient,
                               const std::vector<Share>& direction, double tolerance) {
  constexpr double kStep = 1e-5;
  double slope = 0, size = 0;
  std::vector<double> kept;
  for (const Share& s : direction) {
    slope += gradient[s.place] * s.share;
    size += gradient[s.place] * gradient[s.place];
    kept.push_back(state[s.place]);
  }
  auto at = [&](double step) {
    for (size_t i = 0; i < kept.size(); ++i) {
      state[direction[i].place] = kept[i] + step * direction[i].share;
    }
    return loss.At(state);
  };
  const double found = (at(kStep) - at(-kStep)) / (2 * kStep);
  for (size_t i = 0; i < kept.size(); ++i) state[direction[i].place] = kept[i];
  if (std::fabs(found - slope) <= tolerance * (std::sqrt(size) + 1e-2)) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "slope " << slope << ", by differences " << found;
}

}  // namespace

testing::AssertionResult CheckGradient(const Graph& graph, const GradientOptions& options) {
  Loss loss(graph, options);
  std::vector<double> state = MakeState(graph, loss.layout(), options.seed);
  const std::vector<double> gradient = loss.Gradient(state);
  const Random random(HashKey(options.seed, 2));
  uint64_t drawn = 0;
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    const Range range = loss.layout().parameters[p];
    if (loss.layout().IsFrozen(range)) continue;
    std::vector<std::vector<Share>> directions(1);
    for (size_t i = range.begin; i < range.end(); ++i) {
      directions[0].push_back({i, random.Normal(drawn++) / std::sqrt(double(range.size))});
    }
    const size_t coordinates = std::min(size_t(options.coordinates), range.size);
    for (size_t k = 0; k < coordinates; ++k) {
      const bool all = coordinates == range.size;
      const size_t place = all ? k : random.Bits(drawn++) % range.size;
      directions.push_back({{range.begin + place, 1.0}});
    }
    for (const auto& direction : directions) {
      const auto result = Along(loss, state, gradient, direction, options.tolerance);
      if (result) continue;
      const std::string place = direction.size() == 1
                                    ? fmt::format("[{}]", direction[0].place - range.begin)
                                    : " along a random direction";
      return testing::AssertionFailure()
             << result.message() << " for " << graph.parameters[p].name << place;
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace trireme::check
