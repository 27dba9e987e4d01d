// Work that comes again and again, on a card: skipped where there is none, with the reason.
#include "engine/cuda/capture.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "engine/cuda/call_list.h"
#include "engine/cuda/check.h"
#include "engine/cuda/device.h"
#include "engine/cuda/engine.h"
#include "engine/cuda/executable.h"
#include "engine/cuda/flat.h"
#include "engine/cuda/library.h"
#include "engine/cuda/memset_nodes.h"
#include "flat/host_memory.h"
#include "flat/staging.h"
#include "graph/models/models.h"
#include "graph/program.h"

namespace trireme::cuda {
namespace {

class ReplaysTest : public testing::Test {
 protected:
  void SetUp() override {
    static const Survey survey = AskInChild(TRIREME_CUDA_PLUGIN_FILE);
    if (!survey.problem.empty()) GTEST_SKIP() << survey.problem;
    card_ = std::make_unique<CudaDevice>(0);
    queue_ = std::make_unique<CudaQueue>(*card_);
    one_ = Buffer(*card_, 1);
    sum_ = Buffer(*card_, 1);
    flat::PutNow(*queue_, std::vector<float>{1}, one_);
  }

  // One more launch, which adds 1.
  void AddOne() {
    LaunchAdd(queue_->stream(), one_.slice().data, sum_.slice().data, 1);
    CheckLaunch("add");
    ++enqueued_;
  }
  float Sum() {
    std::vector<float> sum(1);
    flat::GetNow(*queue_, sum_, sum);
    return sum[0];
  }

  std::unique_ptr<CudaDevice> card_;
  std::unique_ptr<CudaQueue> queue_;
  Buffer one_, sum_;
  int enqueued_ = 0;
};

TEST_F(ReplaysTest, WorkIsEnqueuedOnceCapturedOnceThenLaunched) {
  Replays replays(queue_->stream());
  const auto twice = [&] {
    AddOne();
    AddOne();
  };
  for (int i = 1; i <= 5; ++i) {
    replays.Run({.first = 0, .last = 2}, twice);
    EXPECT_EQ(Sum(), 2 * i);
  }
  EXPECT_EQ(enqueued_, 4);
  EXPECT_EQ(replays.graphs(), 1);
  EXPECT_EQ(replays.refusal(), "");
  replays.Run({.first = 0, .last = 2, .samples = 1}, twice);  // something else
  EXPECT_EQ(enqueued_, 6);
  queue_->Sync();
}

// As a library might that allocates in each call.
TEST_F(ReplaysTest, WhatCannotBeCapturedIsEnqueuedEveryTime) {
  Replays replays(queue_->stream());
  for (int i = 1; i <= 4; ++i) {
    replays.Run({.last = 1}, [&] {
      AddOne();
      queue_->Sync();
    });
    EXPECT_EQ(Sum(), i);
  }
  EXPECT_EQ(replays.graphs(), 0);
  EXPECT_NE(replays.refusal(), "");
  replays.Run({.last = 2}, [&] { AddOne(); });
  replays.Run({.last = 2}, [&] { AddOne(); });
  EXPECT_EQ(replays.graphs(), 1);  // that one can
  EXPECT_EQ(Sum(), 6);
}

TEST_F(ReplaysTest, AFailureIsToldEveryTime) {
  Replays replays(queue_->stream());
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(replays.Run({.last = 1}, [] { throw Error("no"); }), Error);
  }
}

// Waits and allocations of another thread do not spoil a capture.
TEST_F(ReplaysTest, OtherThreadsMayUseTheCardMeanwhile) {
  Replays replays(queue_->stream());
  const auto work = [&] {
    AddOne();
    std::thread([&] {
      const Buffer other(*card_, 100);
      CudaQueue(*card_).Sync();
    }).join();
    AddOne();
  };
  for (int i = 1; i <= 3; ++i) replays.Run({.last = 1}, work);
  EXPECT_EQ(Sum(), 6);
  EXPECT_EQ(replays.graphs(), 1);
}

// A memset between two additions, which would begin late, becomes a kernel.
TEST_F(ReplaysTest, SmallMemsetsBecomeKernels) {
  const cudaStream_t stream = queue_->stream();
  Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin");
  AddOne();
  Check(cudaMemsetAsync(sum_.slice().data, 0, sizeof(float), stream), "memset");
  AddOne();
  cudaGraph_t graph = nullptr;
  Check(cudaStreamEndCapture(stream, &graph), "end");
  ReplaceMemsetNodes(graph);
  size_t size = 0;
  Check(cudaGraphGetNodes(graph, nullptr, &size), "nodes");
  std::vector<cudaGraphNode_t> nodes(size);
  Check(cudaGraphGetNodes(graph, nodes.data(), &size), "nodes");
  EXPECT_EQ(size, 3u);
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type = {};
    Check(cudaGraphNodeGetType(node, &type), "type");
    EXPECT_EQ(type, cudaGraphNodeTypeKernel);
  }
  cudaGraphExec_t launched = nullptr;
  Check(cudaGraphInstantiate(&launched, graph, 0), "instantiate");
  for (int i = 0; i < 3; ++i) Check(cudaGraphLaunch(launched, stream), "launch");
  EXPECT_EQ(Sum(), 1);
  Check(cudaGraphExecDestroy(launched), "destroy");
  Check(cudaGraphDestroy(graph), "destroy");
}

// Nothing in a model's shard stands against it: a graph for each place where samples lie.
TEST_F(ReplaysTest, ShardsOfModelsAreCaptured) {
  for (const Precision precision : kPrecisions) {
    const auto engine = MakeEngine(*card_, precision, {.measure = false});
    for (const Graph& graph :
         {BuildModel({.name = "resnet18"}, {64, 64, 3}, 10),
          BuildModel({.name = "cnn", .dropout = 0.3}, {12, 12, 1}, 10),
          BuildModel({.name = "mlp:30-50-10", .norm = "layer"}, {1, 1, 30}, 10)}) {
      const auto program = Compile(graph, *engine, 2, Mode::kTrain, 1 << 20);
      const auto executable = engine->Load(program, *queue_);
      const Buffer state(*card_, program->layout.state), summand(*card_, program->layout.summand);
      const HostBuffer<float> samples(*card_, size_t(2 * graph.input().size()));
      const HostBuffer<int32_t> labels(*card_, 2);
      for (int i = 0; i < 6; ++i) {
        executable->RunShard({.inputs = samples, .labels = labels, .count = 2}, state, summand,
                             false, {});
      }
      queue_->Sync();
      const Captured captured = CapturedBy(*executable);
      EXPECT_EQ(captured.refusal, "") << NameOf(precision);
      EXPECT_EQ(captured.graphs, kSlots) << NameOf(precision);
    }
  }
}

}  // namespace
}  // namespace trireme::cuda
