#include "pretend/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "engine/check/bytes_check.h"
#include "engine/check/model_check.h"
#include "flat/arithmetic.h"
#include "flat/staging.h"
#include "graph/layout.h"
#include "graph/models/models.h"
#include "graph/program.h"

namespace trireme {
namespace {

constexpr int kCount = 5, kCapacity = 6;
constexpr size_t kBucketFloats = 500;

std::vector<Graph> Models() {
  std::vector<Graph> graphs;
  graphs.push_back(BuildModel({.name = "mlp:12-30-20-3", .dropout = 0.2}, {1, 1, 12}, 3));
  graphs.push_back(BuildModel({.name = "cnn"}, {28, 28, 1}, 10));
  graphs.push_back(BuildModel({.name = "mlp:12-30-20-3", .norm = "batch"}, {1, 1, 12}, 3));
  return graphs;
}

struct Samples {
  HostBuffer<float> inputs;
  HostBuffer<int32_t> labels;
  Batch batch;

  Samples(Device& device, const Graph& graph, int count, uint64_t seed)
      : inputs(device, size_t(count) * size_t(graph.input().size())),
        labels(device, size_t(count)) {
    const Random random(seed);
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = float(random.Normal(i));
    for (size_t i = 0; i < labels.size(); ++i) {
      labels[i] = int32_t(random.Bits(i) % uint64_t(graph.num_classes()));
    }
    batch = {
        .inputs = inputs, .labels = labels, .count = count, .loss_scale = 0.1f, .random_key = 3};
  }
};

// Summand after a shard, one more accumulated and an empty one; then the logits of the first.
std::vector<float> Results(Engine& engine, const Graph& graph) {
  const Layout layout = LayOut(graph);
  auto queue = engine.device().NewQueue();
  Buffer state(engine.device(), layout.state), summand(engine.device(), layout.summand);
  const std::vector<float> initial = InitialState(graph, layout, 1);
  flat::PutNow(*queue, initial, state);
  const auto train =
      engine.Load(Compile(graph, engine, kCapacity, Mode::kTrain, kBucketFloats), *queue);
  const auto evaluate =
      engine.Load(Compile(graph, engine, kCapacity, Mode::kEvaluate, kBucketFloats), *queue);

  Device& device = engine.device();
  const Samples a(device, graph, kCount, 1), b(device, graph, kCapacity, 2);
  const Samples none(device, graph, 0, 3);
  train->RunShard(a.batch, state, summand, false, {});
  train->RunShard(b.batch, state, summand, true, {});
  train->RunShard(none.batch, state, summand, true, {});
  const HostBuffer<float> all(device,
                              layout.summand + size_t(kCount) * size_t(graph.num_classes()));
  flat::Get(*queue, summand, all.data());
  evaluate->Evaluate(a.batch, state, {.logits = all.values().subspan(layout.summand)});
  return {all.values().begin(), all.values().end()};
}

TEST(PretendEngine, GivesTheBitsOfTheCpuEngine) {
  for (const Graph& graph : Models()) {
    HostDevice host;
    CpuEngine cpu(host, 1);
    PretendDevice device;
    PretendEngine pretend(device, 1);
    EXPECT_EQ(cpu.target(), pretend.target());
    EXPECT_EQ(Results(pretend, graph), Results(cpu, graph));
  }
}

TEST(PretendEngine, AgreesWithTheJudge) {
  for (const Graph& graph : Models()) {
    PretendDevice device;
    PretendEngine engine(device, 2);
    EXPECT_TRUE(check::CheckModelAgainstRef(engine, graph, kCount, kCapacity));
  }
}

TEST(PretendEngine, DrawsBytesAsTheProcessorDoes) {
  PretendDevice device;
  PretendEngine engine(device, 2);
  EXPECT_TRUE(check::CheckBytes(engine));
}

// A rank that is lost ends the shard, and the queue does not wait for it.
TEST(PretendEngine, ASumThatFailsIsThrownByRunShard) {
  const Graph graph = Models().back();
  const Layout layout = LayOut(graph);
  PretendDevice device;
  PretendEngine engine(device, 1);
  const auto queue = device.NewQueue();
  const Buffer state(device, layout.state), summand(device, layout.summand);
  const auto executable =
      engine.Load(Compile(graph, engine, kCapacity, Mode::kTrain, kBucketFloats), *queue);
  Samples samples(device, graph, kCount, 1);
  const auto lost = [](std::span<double>) { throw Error("rank 1 is gone"); };
  samples.batch.sum_over_shards = lost;
  EXPECT_THROW(executable->RunShard(samples.batch, state, summand, false, {}), Error);
  queue->Sync();
}

// Everything is announced while the queue still waits; the batch must live until its event.
TEST(PretendEngine, AnnouncesAllBucketsBeforeAnyWorkHasRun) {
  const Graph graph = Models()[0];
  const Layout layout = LayOut(graph);
  PretendDevice device;
  PretendEngine engine(device, 1);
  auto gate = device.NewQueue(), queue = device.NewQueue(), reader = device.NewQueue();
  Buffer state(device, layout.state), summand(device, layout.summand);
  const auto program = Compile(graph, engine, kCapacity, Mode::kTrain, kBucketFloats);
  const auto executable = engine.Load(program, *queue);
  ASSERT_GT(program->buckets.size(), 2u);

  std::mutex mutex;
  std::unique_lock closed(mutex);
  static_cast<PretendQueue&>(*gate).Do([&mutex] { const std::lock_guard wait(mutex); });
  queue->Wait(gate->Record());
  const Samples samples(device, graph, kCount, 1);
  const HostBuffer<float> host(device, std::vector<float>(layout.summand, -1));
  const std::span<float> got = host;
  std::vector<int> buckets;
  const Event taken = executable->RunShard(
      samples.batch, state, summand, false, [&](const Bucket& bucket, const Event& event) {
        buckets.push_back(bucket.index);
        reader->Wait(event);
        flat::Get(*reader, summand.slice().Sub(bucket.range.begin, bucket.range.size),
                  got.data() + bucket.range.begin);
      });
  EXPECT_EQ(buckets.size(), program->buckets.size());
  EXPECT_TRUE(std::ranges::all_of(got, [](float x) { return x == -1; }));
  closed.unlock();
  taken.Wait();
  std::ranges::fill(samples.inputs.values(), 1e30f);  // ours again
  reader->Sync();
  std::vector<float> want(layout.summand);
  flat::GetNow(*queue, summand, want);
  EXPECT_TRUE(std::ranges::equal(got, want));
  EXPECT_GT(got[layout.loss()], 0);
  EXPECT_LT(got[layout.loss()], 10);
}

}  // namespace
}  // namespace trireme
