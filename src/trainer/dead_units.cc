#include "trainer/dead_units.h"

#include <algorithm>
#include <vector>

#include "flat/host_memory.h"
#include "flat/staging.h"
#include "graph/op.h"
#include "graph/program.h"

namespace trireme {
namespace {

constexpr double kMany = 0.5;      // of a layer's units
constexpr int64_t kSamples = 128;  // enough that a unit that lives fires for one of them
constexpr int kTogether = 32;

const Node* ProducerOf(const Graph& graph, ValueId value) {
  for (const Node& node : graph.nodes) {
    if (std::ranges::find(node.outputs, value) != node.outputs.end()) return &node;
  }
  return nullptr;
}

// What is added to each unit of the value that a node makes; -1: nothing.
int ShiftOf(const Graph& graph, const Node& node) {
  if (node.parameters.size() < 2) return -1;
  const int last = node.parameters.back();
  const int channels = graph.values[size_t(node.outputs[0])].shape.channels;
  return graph.parameters[size_t(last)].size() == channels ? last : -1;
}

}  // namespace

std::optional<DeadUnits> FindDeadUnits(const Graph& graph, const Layout& layout,
                                       std::span<const float> gradient) {
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (std::string_view(node->op->name) != "relu") continue;
    const Node* const before = ProducerOf(graph, node->inputs[0]);
    const int shift = before ? ShiftOf(graph, *before) : -1;
    if (shift < 0) continue;
    const Range range = layout.parameters[size_t(shift)];
    if (layout.IsFrozen(range)) continue;  // it has no gradient
    const auto own = gradient.subspan(range.begin, range.size);
    const DeadUnits found{.layer = before->name,
                          .dead = int(std::ranges::count(own, 0.0f)),
                          .units = int(own.size())};
    if (found.share() >= kMany) return found;
  }
  return {};
}

std::optional<DeadUnits> ProbeDeadUnits(const Job& job, Engine& engine, Queue& queue, Slice state) {
  if (job.recipe.trainer.precision == "fp16") return {};
  const Source& train = *job.data.train;
  const int64_t samples = std::min(kSamples, train.size());
  const auto executable =
      engine.Load(Compile(job.graph, engine, kTogether, Mode::kTrain, job.bucket_floats()), queue);
  const Buffer summand(engine.device(), job.layout.summand);
  const HostBuffer<float> inputs(engine.device(), size_t(kTogether * train.shape().size()));
  const HostBuffer<int32_t> labels(engine.device(), size_t(kTogether));
  for (int64_t begin = 0; begin < samples; begin += kTogether) {
    std::vector<int64_t> indices;  // evenly from all of it
    for (int64_t i = begin; i < std::min(samples, begin + kTogether); ++i) {
      indices.push_back(i * train.size() / samples);
    }
    train.Gather(indices, job.normalizer, inputs.data(), labels.data());
    executable
        ->RunShard({.inputs = inputs.values().first(indices.size() * size_t(train.shape().size())),
                    .labels = labels.values().first(indices.size()),
                    .count = int(indices.size()),
                    .loss_scale = 1.0f / float(samples)},
                   state, summand, /*accumulate=*/begin > 0, {})
        .Wait();
  }
  std::vector<float> gradient(job.layout.weights);
  flat::GetNow(queue, summand.slice().Sub(0, gradient.size()), gradient);
  return FindDeadUnits(job.graph, job.layout, gradient);
}

}  // namespace trireme
