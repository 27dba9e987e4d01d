#include "model/evaluation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/label.h"
#include "base/random.h"
#include "data/memory_source.h"
#include "engine/engines.h"
#include "engine/ref/engine.h"
#include "flat/staging.h"
#include "graph/layout.h"
#include "graph/models/models.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

// Three samples are less than a chunk: an engine sees only those that are there.
TEST(Evaluator, AllEnginesAgreeOnAShortChunk) {
  ModelOptions options;
  options.name = "mlp:2-4-3";
  const Graph graph = BuildModel(options, {1, 1, 2}, 3);
  const Layout layout = LayOut(graph);
  const std::vector<float> state = InitialState(graph, layout, 7);
  const FloatSource samples({1, 1, 2}, {1, 0, 0, 1, -1, 2}, {0, 1, 2});
  std::vector<Evaluation> results;
  for (const EngineKind& kind : EngineKinds()) {
    if (!kind.Missing().empty()) continue;
    const Backend backend = kind.make(Precision::kF32, {}, {});
    const auto queue = backend.engine->device().NewQueue();
    Buffer on_device(backend.engine->device(), layout.state);
    flat::PutNow(*queue, state, on_device);
    Evaluator evaluator(graph, *backend.engine, *queue, samples, Normalizer::Identity(2));
    results.push_back(evaluator.Run(on_device));
    queue->Sync();
  }
  for (const Evaluation& result : results) {
    EXPECT_EQ(result.samples, 3);
    EXPECT_NEAR(result.loss, results[0].loss, 1e-5);
    EXPECT_EQ(result.confusion, results[0].confusion);
  }
}

// Wants many samples at once.
class GreedyEngine : public RefEngine {
 public:
  int evaluation_samples() const override { return 250; }
};

// 530 samples are five chunks and a piece: the result is the same however many are computed at
// once, and by how many ranks.
TEST(Evaluator, SumsAreThoseOfChunks) {
  constexpr int kSamples = 530;
  const Graph graph = BuildModel({.name = "mlp:2-4-3"}, {1, 1, 2}, 3);
  const Layout layout = LayOut(graph);
  const std::vector<float> state = InitialState(graph, layout, 7);
  const Random random(5);
  std::vector<float> values(2 * kSamples);
  for (size_t i = 0; i < values.size(); ++i) values[i] = float(random.Normal(i));
  std::vector<int32_t> labels(kSamples);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = int32_t(random.Bits(i) % 3);
  const FloatSource samples({1, 1, 2}, values, labels);
  const auto evaluate = [&](RefEngine& engine, int ranks) {
    Evaluation result;
    RunRanks(ranks, 60, [&](World& world) {
      const auto queue = engine.device().NewQueue();
      const Buffer on_device(engine.device(), layout.state);
      flat::PutNow(*queue, state, on_device);
      Evaluator evaluator(graph, engine, *queue, samples, Normalizer::Identity(2));
      const Evaluation own = evaluator.Run(on_device, world.rank(), ranks, &world.group());
      const RocCurves curves = evaluator.Details(&world.group()).roc;
      if (world.rank() != 0) return;
      result = own;
      EXPECT_EQ(curves.classes.size(), 3u);
    });
    return result;
  };
  RefEngine one;
  GreedyEngine greedy;
  EXPECT_EQ(Evaluator::Capacity(one, graph, samples), 100);
  EXPECT_EQ(Evaluator::Capacity(greedy, graph, samples), 300);
  const Evaluation want = evaluate(one, 1);
  EXPECT_EQ(want.samples, kSamples);
  for (const int ranks : {1, 2, 3, 7}) {
    for (RefEngine* engine : {&one, static_cast<RefEngine*>(&greedy)}) {
      const Evaluation got = evaluate(*engine, ranks);
      EXPECT_EQ(got.loss, want.loss) << ranks << " ranks";
      EXPECT_EQ(got.confusion, want.confusion);
      EXPECT_EQ(got.top5, want.top5);
    }
  }
}

// Against plain loops over the network's answers; the same bits on any number of ranks.
TEST(Evaluator, NumbersAreJudgedInTheirOwnUnit) {
  constexpr int kSamples = 530;
  const Graph graph = BuildModel({.name = "mlp:2-4-1"}, {1, 1, 2}, 1);
  const Layout layout = LayOut(graph);
  const std::vector<float> state = InitialState(graph, layout, 7);
  const Random random(5);
  std::vector<float> values(2 * kSamples);
  for (size_t i = 0; i < values.size(); ++i) values[i] = float(random.Normal(i));
  std::vector<int32_t> labels(kSamples);
  for (size_t i = 0; i < labels.size(); ++i) {
    labels[i] = LabelOfNumber(float(1000 + 20 * random.Normal(7000 + i)));
  }
  const FloatSource samples({1, 1, 2}, values, labels);
  Normalizer normalizer = Normalizer::Identity(2);
  normalizer.SetTarget(FitTarget(samples));
  const auto evaluate = [&](int ranks) {
    Evaluation result;
    RunRanks(ranks, 60, [&](World& world) {
      RefEngine engine;
      const auto queue = engine.device().NewQueue();
      const Buffer on_device(engine.device(), layout.state);
      flat::PutNow(*queue, state, on_device);
      Evaluator evaluator(graph, engine, *queue, samples, normalizer);
      const Evaluation own = evaluator.Run(on_device, world.rank(), ranks, &world.group());
      EXPECT_TRUE(evaluator.Details(&world.group()).roc.classes.empty());
      if (world.rank() == 0) result = own;
    });
    return result;
  };
  RefEngine engine;
  const auto queue = engine.device().NewQueue();
  const auto executable = engine.Load(Compile(graph, engine, kSamples, Mode::kEvaluate, 0), *queue);
  Buffer on_device(engine.device(), layout.state);
  flat::PutNow(*queue, state, on_device);
  std::vector<float> answers(kSamples);
  executable->Evaluate({.inputs = values, .labels = labels, .count = kSamples}, on_device,
                       {.logits = answers});
  double squares = 0, absolutes = 0, mean = 0, spread = 0;
  for (const int32_t label : labels) mean += NumberOfLabel(label) / double(kSamples);
  for (size_t i = 0; i < labels.size(); ++i) {
    const double truth = NumberOfLabel(labels[i]);
    const double error = normalizer.target()->Original(answers[i]) - truth;
    squares += error * error;
    absolutes += std::abs(error);
    spread += (truth - mean) * (truth - mean);
  }
  const Evaluation want = evaluate(1);
  ASSERT_TRUE(want.errors);
  EXPECT_EQ(want.samples, kSamples);
  EXPECT_NEAR(want.errors->Rmse(), std::sqrt(squares / kSamples), 1e-4);
  EXPECT_NEAR(want.errors->Mae(), absolutes / kSamples, 1e-4);
  EXPECT_NEAR(want.errors->R2().value(), 1 - squares / spread, 1e-5);
  EXPECT_NEAR(want.loss, squares / kSamples / 2 / std::pow(normalizer.target()->deviation, 2),
              1e-4);
  for (const int ranks : {2, 3, 7}) {
    const Evaluation got = evaluate(ranks);
    EXPECT_EQ(got.loss, want.loss) << ranks << " ranks";
    EXPECT_EQ(got.errors->R2(), want.errors->R2());
    EXPECT_EQ(got.errors->Rmse(), want.errors->Rmse());
    EXPECT_EQ(got.errors->Mae(), want.errors->Mae());
  }
}

}  // namespace
}  // namespace trireme
