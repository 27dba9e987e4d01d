#include "engine/check/bytes_check.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "flat/arithmetic.h"
#include "flat/host_memory.h"
#include "flat/staging.h"
#include "graph/layout.h"
#include "graph/models/models.h"
#include "graph/program.h"

namespace trireme::check {
namespace {

constexpr int kSetSize = 11, kCapacity = 5;

// A set of bytes, and some of its samples, each changed in another way.
class ByteData {
 public:
  ByteData(Device& device, const Shape& shape)
      : shape_(shape),
        size_(size_t(shape.size())),
        bytes_(device, kSetSize * size_),
        values_(device, kCapacity * size_),
        chosen_(device, kCapacity * size_),
        numbers_(device, kCapacity),
        labels_(device, kCapacity),
        changes_(device, kCapacity),
        look_values_(2 * size_t(shape.channels)),
        set_(device, (bytes_.size() + 3) / 4),
        look_(device, look_values_.size()) {
    const Random random(7);
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = uint8_t(random.Bits(i));
    for (size_t i = 0; i < look_values_.size(); ++i) look_values_[i] = float(random.Normal(i));
    const auto queue = device.NewQueue();
    std::vector<float> floats(set_.slice().size);
    std::ranges::copy(bytes_.values(), reinterpret_cast<uint8_t*>(floats.data()));
    flat::PutNow(*queue, floats, set_);
    flat::PutNow(*queue, look_values_, look_);
  }

  // Writes the memory that batches point to; nobody reads it any more.
  void Choose(uint64_t turn, bool changed) {
    const Random random(turn);
    auto below = [&, at = uint64_t{0}](int limit) mutable {
      return int32_t(random.Bits(at++) % uint64_t(limit));
    };
    const float* const scale = look_values_.data();
    const ByteLook look{shape_.height, shape_.width, shape_.channels, scale,
                        scale + shape_.channels};
    for (size_t i = 0; i < kCapacity; ++i) {
      numbers_[i] = below(kSetSize);
      labels_[i] = below(10);
      SampleChange& change = changes_[i];
      change = {.mirrored = below(2), .down = below(9) - 4, .right = below(9) - 4};
      change.top = below(shape_.height + 1);
      change.left = below(shape_.width + 1);
      change.bottom = change.top + below(shape_.height + 1 - change.top);
      change.end = change.left + below(shape_.width + 1 - change.left);
      const auto near = [&](float middle) { return middle + 0.01f * float(below(101) - 50); };
      if (below(2)) change.map = {near(1), near(0), near(0), near(0), near(1), near(0)};
      if (below(2)) change.colours = {near(1), near(1), near(0)};
      const uint8_t* const sample = bytes_.data() + size_t(numbers_[i]) * size_;
      std::copy_n(sample, size_, chosen_.data() + i * size_);
      DrawSample(sample, look, changed ? change : SampleChange(), values_.data() + i * size_);
    }
    changed_ = changed;
  }

  Batch AsValues(int count) const {
    return {.inputs = values_.values().first(size_t(count) * size_),
            .labels = labels_.values().first(size_t(count)),
            .count = count};
  }
  Batch AsBytes(int count) const {
    Batch batch = Bare(count);
    batch.bytes.samples = chosen_.values().first(size_t(count) * size_);
    return batch;
  }
  Batch AsNumbers(int count) const {
    Batch batch = Bare(count);
    batch.bytes.set = set_;
    batch.bytes.numbers = numbers_.values().first(size_t(count));
    return batch;
  }

 private:
  Batch Bare(int count) const {
    Batch batch = AsValues(count);
    batch.inputs = {};
    batch.bytes.shape = shape_;
    batch.bytes.look = look_;
    if (changed_) batch.bytes.changes = changes_.values().first(size_t(count));
    return batch;
  }

  const Shape shape_;
  const size_t size_;  // of a sample
  HostBuffer<uint8_t> bytes_;
  HostBuffer<float> values_;
  HostBuffer<uint8_t> chosen_;
  HostBuffer<int32_t> numbers_, labels_;
  HostBuffer<SampleChange> changes_;
  std::vector<float> look_values_;
  Buffer set_, look_;
  bool changed_ = false;
};

// What some shards in a row and an evaluation leave; `form` makes a batch of the data.
template <class Form>
std::vector<float> ResultsOf(Engine& engine, const Graph& graph, const Shape& pictures,
                             const Form& form) {
  Device& device = engine.device();
  const Layout layout = LayOut(graph);
  const auto queue = device.NewQueue();
  const auto train =
      engine.Load(Compile(graph, engine, kCapacity, Mode::kTrain, size_t{1} << 20), *queue);
  const auto evaluate =
      engine.Load(Compile(graph, engine, kCapacity, Mode::kEvaluate, size_t{1} << 20), *queue);
  const Buffer state(device, layout.state), summand(device, layout.summand);
  flat::PutNow(*queue, InitialState(graph, layout, 1), state);
  ByteData data(device, pictures);
  std::vector<float> results;
  const auto keep = [&](std::span<const float> some) {
    results.insert(results.end(), some.begin(), some.end());
  };
  std::vector<float> got(layout.summand);
  const HostBuffer<float> logits(device, kCapacity * size_t(graph.num_classes()));
  for (uint64_t turn = 0; turn < 8; ++turn) {
    data.Choose(turn, turn % 3 != 0);
    const int count = turn % 2 ? kCapacity : kCapacity - 2;
    const Batch batch = form(data, count);
    train->RunShard(batch, state, summand, turn > 0, {}).Wait();
    flat::GetNow(*queue, summand, got);
    keep(got);
    const auto some = logits.values().first(size_t(count) * size_t(graph.num_classes()));
    evaluate->Evaluate(batch, state, {.logits = some});
    keep(some);
  }
  return results;
}

}  // namespace

testing::AssertionResult CheckBytes(Engine& engine) {
  if (!engine.takes_bytes()) return testing::AssertionFailure() << "takes no bytes";
  const Shape tall{9, 7, 3}, grey{12, 12, 1};
  const std::pair<Graph, Shape> cases[] = {
      {BuildModel({.name = "cnn"}, grey, 10), grey},
      {BuildModel({.name = "mlp:189-20-10"}, {1, 1, 189}, 10), tall},
  };
  for (const auto& [graph, pictures] : cases) {
    const auto values = ResultsOf(engine, graph, pictures, std::mem_fn(&ByteData::AsValues));
    if (ResultsOf(engine, graph, pictures, std::mem_fn(&ByteData::AsBytes)) != values) {
      return testing::AssertionFailure() << "bytes of " << ToText(pictures) << " differ";
    }
    if (ResultsOf(engine, graph, pictures, std::mem_fn(&ByteData::AsNumbers)) != values) {
      return testing::AssertionFailure() << "a set of " << ToText(pictures) << " differs";
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace trireme::check
