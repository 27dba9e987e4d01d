#include "engine/check/model_check.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <vector>

#include "engine/check/compare.h"
#include "engine/ref/engine.h"
#include "engine/ref/runner.h"
#include "flat/arithmetic.h"
#include "flat/staging.h"
#include "graph/layout.h"
#include "graph/op.h"
#include "graph/program.h"

namespace trireme::check {
namespace {

constexpr size_t kBucketFloats = 1000;  // small: several buckets

struct Data {
  HostBuffer<float> inputs;
  HostBuffer<int32_t> labels;
  Batch batch;

  Data(Device& device, const Graph& graph, int count, uint64_t key)
      : inputs(device, RandomFloats(key, size_t(count * graph.input().size()))),
        labels(device, RandomLabels(key, size_t(count), graph.num_classes())),
        batch{.inputs = inputs,
              .labels = labels,
              .count = count,
              .loss_scale = count ? 1.0f / float(count) : 1.0f,
              .statistics_scale = 0.5f,
              .random_key = 5,
              .vote = float(key % 2),
              .first_position = 10} {}
};

// Relative to the largest of the tensor: gradients of early layers are small.
testing::AssertionResult Close(const std::string& what, std::span<const float> got,
                               std::span<const double> want, double tolerance) {
  double largest = 1e-3;
  for (const double x : want) largest = std::max(largest, std::fabs(x));
  return Near(what, got, want, tolerance * std::min(1.0, largest));
}

testing::AssertionResult CompareSummands(const Graph& graph, const Layout& layout,
                                         std::span<const float> got, std::span<const double> want,
                                         const ModelCheck& how) {
  auto compare = [&](const std::string& what, Range r, double tolerance) {
    if (layout.IsFrozen(r)) return testing::AssertionSuccess();
    return Close(what, got.subspan(r.begin, r.size), want.subspan(r.begin, r.size), tolerance);
  };
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    if (auto r = compare(graph.parameters[i].name, layout.parameters[i], how.gradients); !r) {
      return r;
    }
  }
  for (size_t i = 0; i < graph.statistics.size(); ++i) {
    if (auto r = compare(graph.statistics[i].name, layout.statistics[i], how.values); !r) {
      return r;
    }
  }
  const Range metrics = {layout.loss(), Layout::kStepMetrics};
  if (auto r = compare("metrics", metrics, how.values); !r) return r;
  std::vector<bool> used(layout.summand);
  for (const auto& ranges : {layout.parameters, layout.statistics}) {
    for (const Range& r : ranges) {
      if (!layout.IsFrozen(r)) std::fill_n(used.begin() + std::ptrdiff_t(r.begin), r.size, true);
    }
  }
  for (size_t i = 0; i < layout.trained(); ++i) {
    if (!used[i] && got[i] != 0) {
      return testing::AssertionFailure() << "gap " << i << " holds " << got[i];
    }
  }
  return testing::AssertionSuccess();
}

// The parts of a shard follow each other, waits lie inside forward.
testing::AssertionResult CheckMarks(const ShardMarks& marks) {
  std::vector<Event> order = {marks.began};
  for (const ShardMarks::Wait& wait : marks.waits) {
    order.push_back(wait.began);
    order.push_back(wait.ended);
  }
  order.push_back(marks.border);
  order.push_back(marks.ended);
  const auto missing = [](const Event& event) { return !event.recorded(); };
  if (std::ranges::any_of(order, missing))
    return testing::AssertionFailure() << "a mark is missing";
  if (!std::ranges::is_sorted(order, {}, &Event::FiredAt)) {
    return testing::AssertionFailure() << "marks are not in order";
  }
  return testing::AssertionSuccess();
}

class Trial {
 public:
  Trial(Engine& engine, const Graph& graph, int capacity, const ModelCheck& how)
      : engine_(engine),
        graph_(graph),
        capacity_(capacity),
        how_(how),
        layout_(LayOut(graph)),
        state_(InitialState(graph, layout_, 3)),
        queue_(engine.device().NewQueue()),
        state_buffer_(engine.device(), layout_.state) {
    const auto noise = RandomFloats(9, state_.size());
    for (const Range& r : layout_.parameters) {  // no bias is zero
      for (size_t i = r.begin; i < r.end(); ++i) state_[i] += 0.1f * noise[i];
    }
    for (const Node& node : graph.nodes) {
      if (node.op != &FindOp("batch_norm")) continue;
      const Range& bias = layout_.parameters[size_t(node.parameters[1])];
      for (size_t i = 0; i < bias.size; ++i) {
        state_[bias.begin + i] += i % 2 ? -how.norm_bias : how.norm_bias;
      }
    }
    for (const Range& r : layout_.statistics) {  // variances stay positive
      for (size_t i = r.begin; i < r.end(); ++i) state_[i] += std::fabs(noise[i]);
    }
    flat::PutNow(*queue_, state_, state_buffer_);
  }

  testing::AssertionResult Train(const std::vector<Data>& shards) {
    const auto program = Compile(graph_, engine_, capacity_, Mode::kTrain, kBucketFloats);
    const auto executable = engine_.Load(program, *queue_);
    const Buffer summand(engine_.device(), layout_.summand);
    std::vector<float> got(layout_.summand);
    std::vector<double> want(layout_.summand);
    ref::Runner judge(*RefProgram(Mode::kTrain));
    for (size_t i = 0; i < shards.size(); ++i) {
      std::vector<int> finished;
      auto ready = [&](const Bucket& bucket, const Event& event) {
        finished.push_back(event.recorded() ? bucket.index : -1);
      };
      ShardMarks marks;
      Batch batch = shards[i].batch;
      batch.marks = &marks;
      executable->RunShard(batch, state_buffer_, summand, i > 0, ready).Wait();
      flat::GetNow(*queue_, summand, got);
      if (auto r = CheckMarks(marks); !r) return r;
      judge.Run(shards[i].batch, Widen(state_), want, i > 0);
      if (auto r = CompareSummands(graph_, layout_, got, want, how_); !r) {
        return r << " (shard " << i << ")";
      }
      std::vector<int> expected;
      for (const Bucket& bucket : program->buckets) expected.push_back(bucket.index);
      if (finished != expected) {
        return testing::AssertionFailure() << "buckets came in another order, or not all";
      }
    }
    return testing::AssertionSuccess();
  }

  // Where an instruction finishes several buckets, all are announced there, in order and final.
  testing::AssertionResult TrainWithBucketsTogether(const Data& data) {
    auto program = std::make_shared<Program>(
        *Compile(graph_, engine_, capacity_, Mode::kTrain, kBucketFloats));
    std::vector<int> open;  // of every second announcement
    for (Instruction& i : program->instructions) {
      if (i.finishes.empty()) continue;
      i.finishes.insert(i.finishes.begin(), open.begin(), open.end());
      open.clear();
      if (i.finishes.size() == 1) std::swap(open, i.finishes);
    }
    for (auto i = program->instructions.rbegin(); !open.empty(); ++i) {
      if (i->backward) std::swap(open, i->finishes);
    }
    const auto executable = engine_.Load(program, *queue_);
    const Buffer summand(engine_.device(), layout_.summand);
    const HostBuffer<float> got(engine_.device(), layout_.summand);
    std::vector<float> want(layout_.summand);
    const auto copies = engine_.device().NewQueue();
    int next = 0;
    bool in_order = true;
    const auto ready = [&](const Bucket& bucket, const Event& event) {
      in_order &= bucket.index == next++;
      copies->Wait(event);
      const Range& range = bucket.range;
      flat::Get(*copies, summand.slice().Sub(range.begin, range.size), got.data() + range.begin);
    };
    executable->RunShard(data.batch, state_buffer_, summand, false, ready);
    flat::GetNow(*queue_, summand, want);
    copies->Sync();
    if (!in_order || next != int(program->buckets.size())) {
      return testing::AssertionFailure() << "buckets came in another order, or not all";
    }
    if (!std::ranges::equal(got.values(), want)) {
      return testing::AssertionFailure() << "a bucket was announced too early";
    }
    return testing::AssertionSuccess();
  }

  // The state comes bucket by bucket, each when it is asked for: nothing is read before, and the
  // bits are those of a state that was there.
  testing::AssertionResult TrainAsWeightsArrive(const Data& data) {
    const auto program = Compile(graph_, engine_, capacity_, Mode::kTrain, kBucketFloats);
    const auto executable = engine_.Load(program, *queue_);
    const Buffer arriving(engine_.device(), layout_.state);
    const Buffer summand(engine_.device(), layout_.summand);
    std::vector<float> got(layout_.summand), want(layout_.summand);
    executable->RunShard(data.batch, state_buffer_, summand, false, {});
    flat::GetNow(*queue_, summand, want);
    const size_t trained = layout_.trained();  // the rest is there from the beginning
    flat::Fill(*queue_, std::numeric_limits<float>::quiet_NaN(), arriving.slice().Sub(0, trained));
    if (layout_.frozen > 0) {
      flat::Copy(*queue_, state_buffer_.slice().Sub(trained, layout_.frozen),
                 arriving.slice().Sub(trained, layout_.frozen));
    }
    queue_->Sync();
    const HostBuffer<float> host(engine_.device(), state_);
    const auto copies = engine_.device().NewQueue();
    std::vector<int> asked(program->buckets.size());
    const auto await = [&](const Bucket& bucket) {
      const size_t begin = bucket.range.begin;
      const size_t size = std::min(bucket.range.end(), trained) - begin;
      flat::Put(*copies, host.data() + begin, arriving.slice().Sub(begin, size));
      ++asked[size_t(bucket.index)];
      return copies->Record();
    };
    ShardMarks marks;
    Batch batch = data.batch;
    batch.await_bucket = await;
    batch.marks = &marks;
    executable->RunShard(batch, arriving, summand, false, {});
    flat::GetNow(*queue_, summand, got);
    if (auto r = CheckMarks(marks); !r) return r;
    if (marks.waits.empty()) return testing::AssertionFailure() << "no wait was marked";
    asked.pop_back();  // the tail: read where the model has statistics
    if (std::ranges::any_of(asked, [](int times) { return times != 1; })) {
      return testing::AssertionFailure() << "some weights were not asked for, or twice";
    }
    if (got != want) return testing::AssertionFailure() << "weights were read before they came";
    return testing::AssertionSuccess();
  }

  // As if another rank had the same shard: sums are twice its own. They are asked for by this
  // thread, and not once RunShard has returned.
  testing::AssertionResult TrainBesideATwin(const Data& data) {
    const auto executable =
        engine_.Load(Compile(graph_, engine_, capacity_, Mode::kTrain, kBucketFloats), *queue_);
    const Buffer summand(engine_.device(), layout_.summand);
    bool running = true, astray = false;
    const auto twice = [&, thread = std::this_thread::get_id()](std::span<double> values) {
      for (double& value : values) value *= 2;
      astray = astray || !running || std::this_thread::get_id() != thread;
    };
    Batch batch = data.batch;
    batch.sum_over_shards = twice;
    executable->RunShard(batch, state_buffer_, summand, false, {});
    running = false;
    std::vector<float> got(layout_.summand);
    flat::GetNow(*queue_, summand, got);
    if (astray) return testing::AssertionFailure() << "sums were asked for elsewhere, or too late";
    std::vector<double> want(layout_.summand);
    running = true;
    ref::Runner(*RefProgram(Mode::kTrain)).Run(batch, Widen(state_), want, false);
    return CompareSummands(graph_, layout_, got, want, how_);
  }

  testing::AssertionResult Evaluate(const Data& data) {
    const auto program = Compile(graph_, engine_, capacity_, Mode::kEvaluate, kBucketFloats);
    const auto executable = engine_.Load(program, *queue_);
    const size_t count = size_t(data.batch.count), all = count * size_t(graph_.num_classes());
    Device& device = engine_.device();
    const HostBuffer<float> logits(device, all), probabilities(device, all), losses(device, count);
    executable->Evaluate(data.batch, state_buffer_, {logits, probabilities, losses});

    const auto ref_program = RefProgram(Mode::kEvaluate);
    ref::Runner judge(*ref_program);
    std::vector<double> summand(layout_.summand);
    judge.Run(data.batch, Widen(state_), summand, false);
    auto compare = [&](const char* what, std::span<const float> got, const Operand& want) {
      return Close(what, got, judge.value(want.value), how_.values);
    };
    if (auto r = compare("logits", logits, ref_program->logits); !r) return r;
    if (auto r = compare("probabilities", probabilities, ref_program->probabilities); !r) return r;
    return compare("losses", losses, ref_program->losses);
  }

 private:
  std::shared_ptr<const Program> RefProgram(Mode mode) {
    ref_programs_.push_back(Compile(graph_, RefEngine(), capacity_, mode, kBucketFloats));
    return ref_programs_.back();
  }

  Engine& engine_;
  const Graph& graph_;
  const int capacity_;
  const ModelCheck how_;
  const Layout layout_;
  std::vector<float> state_;
  const std::unique_ptr<Queue> queue_;
  const Buffer state_buffer_;
  std::vector<std::shared_ptr<const Program>> ref_programs_;  // runners borrow them
};

}  // namespace

testing::AssertionResult CheckModelAgainstRef(Engine& engine, const Graph& graph, int count,
                                              int capacity, const ModelCheck& how) {
  Trial trial(engine, graph, capacity, how);
  std::vector<Data> shards;
  shards.emplace_back(engine.device(), graph, count, 11);
  shards.emplace_back(engine.device(), graph, capacity, 12);
  shards.emplace_back(engine.device(), graph, 0, 13);
  if (auto r = trial.Train(shards); !r) return r << " in training, accumulated";
  std::vector<Data> empty;
  empty.emplace_back(engine.device(), graph, 0, 13);
  if (auto r = trial.Train(empty); !r) return r << " in an empty shard";
  if (auto r = trial.TrainWithBucketsTogether(shards[1]); !r) return r << " with buckets together";
  if (auto r = trial.TrainAsWeightsArrive(shards[1]); !r) return r << " as weights arrive";
  if (auto r = trial.TrainBesideATwin(shards[0]); !r) return r << " beside a twin";
  if (auto r = trial.Evaluate(shards[0]); !r) return r << " in evaluation";
  return testing::AssertionSuccess();
}

std::vector<float> SummandOf(Engine& engine, const Graph& graph, int count, float scale) {
  Data data(engine.device(), graph, count, 2);
  const auto queue = engine.device().NewQueue();
  const Buffer on_device(engine.device(), 1);
  flat::PutNow(*queue, {&scale, 1}, on_device);
  if (scale != 1) data.batch.gradient_scale = on_device;
  const auto program = Compile(graph, engine, count, Mode::kTrain, size_t{1} << 20);
  const auto executable = engine.Load(program, *queue);
  const Layout& layout = program->layout;
  const Buffer state(engine.device(), layout.state), summand(engine.device(), layout.summand);
  const std::vector<float> initial = InitialState(graph, layout, 1);
  flat::PutNow(*queue, initial, state);
  executable->RunShard(data.batch, state, summand, false, {});
  std::vector<float> got(layout.summand);
  flat::GetNow(*queue, summand, got);
  for (float& x : std::span(got).first(layout.weights)) x /= scale;
  return got;
}

}  // namespace trireme::check
