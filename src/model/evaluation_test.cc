#include "model/evaluation.h"

#include <gtest/gtest.h>

#include "data/memory_source.h"
#include "engine/engines.h"
#include "flat/staging.h"
#include "graph/layout.h"
#include "graph/models/models.h"

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

}  // namespace
}  // namespace trireme
