#include "pretend/engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.h"
#include "engine/cpu/call_list.h"
#include "graph/op.h"
#include "pretend/handover.h"

namespace trireme {
namespace {

class PretendExecutable : public Executable {
 public:
  PretendExecutable(std::shared_ptr<const Program> program, const cpu::KernelTable& kernels,
                    PretendDevice& device, int threads, Queue& queue, std::atomic<int>* announced)
      : Executable(std::move(program)),
        device_(device),
        queue_(static_cast<PretendQueue&>(queue)),
        announced_(announced),
        team_(threads),
        activations_(device, program_->activation_bytes / sizeof(float) + 1),
        scratch_(device, cpu::CallList::ScratchFloats(*program_, kernels, threads)),
        inputs_(device, size_t(program_->capacity) * size_t(program_->graph.input().size())),
        labels_(device, size_t(program_->capacity)),
        class_weights_(device, size_t(program_->graph.num_classes())),
        mixes_(device, 2 * size_t(program_->capacity)),
        calls_(*program_, kernels, team_,
               reinterpret_cast<std::byte*>(device.Inside(activations_).data),
               device.Inside(scratch_).data) {
    TRIREME_ASSERT(&queue.device() == &device);
    const auto& instructions = program_->instructions;
    num_forward_ =
        int(std::ranges::find_if(instructions, &Instruction::backward) - instructions.begin());
  }
  ~PretendExecutable() override { queue_.Sync(); }

  Event RunShard(const Batch& batch, Slice state, Slice summand, bool accumulate,
                 Ready ready) override {
    const Layout& layout = program_->layout;
    TRIREME_ASSERT(state.size == layout.state && summand.size == layout.summand);
    const auto& instructions = program_->instructions;
    ShardMarks unused;
    ShardMarks& marks = batch.marks ? *batch.marks : unused;
    marks.began = queue_.Mark();
    marks.waits.clear();
    Batch inside = TakeIn(batch);
    const Event taken = queue_.Record();
    const bool sums = batch.sum_over_shards && batch.count > 0;
    inside.sum_over_shards = sums ? Handover::Sum(sums_) : Handover::Sum();
    int at = 0;
    const auto run_until = [&](int end) {
      if (at == end) return;
      queue_.Do([=, this, first = at] {
        Run(inside, state, summand, accumulate, first, end);
        if (sums) sums_.Close();
      });
      if (sums) sums_.Serve(batch.sum_over_shards);
      at = end;
    };
    for (int i = 0; i < calls_.size(); ++i) {
      if (i == num_forward_) {
        run_until(i);
        marks.border = queue_.Mark();
      }
      if (batch.await_bucket && batch.count > 0 && !instructions[size_t(i)].first_reads.empty()) {
        run_until(i);
        const Event began = queue_.Mark();
        for (const int bucket : instructions[size_t(i)].first_reads) {
          queue_.Wait(batch.await_bucket(program_->buckets[size_t(bucket)]));
        }
        marks.waits.push_back({began, queue_.Mark()});
      }
      if (instructions[size_t(i)].finishes.empty()) continue;
      run_until(i + 1);
      if (!ready) continue;
      for (const int bucket : instructions[size_t(i)].finishes) Announce(ready, bucket);
    }
    run_until(calls_.size());
    marks.ended = queue_.Mark();
    if (ready) Announce(ready, int(program_->buckets.size()) - 1);  // the tail
    return taken;
  }

  void Evaluate(const Batch& batch, Slice state, const Results& results) override {
    const Batch inside = TakeIn(batch);
    for (const auto& to : {results.logits, results.probabilities, results.losses}) {
      device_.CheckReach(to.data(), to.size_bytes());
    }
    queue_.Do([=, this] {
      calls_.Run(inside, device_.Inside(state).data, nullptr, false, 0, calls_.size());
      const auto copy = [&](const Operand& from, std::span<float> to) {
        std::copy_n(calls_.Find(from, inside), to.size(), to.data());
      };
      copy(program_->logits, results.logits);
      copy(program_->probabilities, results.probabilities);
      copy(program_->losses, results.losses);
    });
    queue_.Sync();
  }

 private:
  // Enqueues a copy of the samples; gives the batch as the kernels will see it.
  Batch TakeIn(const Batch& batch) {
    const auto* labels = reinterpret_cast<const int32_t*>(device_.Inside(labels_).data);
    Batch inside = batch;
    const size_t values = size_t(batch.count) * size_t(program_->graph.input().size());
    inside.inputs = {device_.Inside(inputs_).data, values};
    inside.labels = {labels, batch.labels.size()};
    if (batch.gradient_scale.size) inside.gradient_scale = device_.Inside(batch.gradient_scale);
    TRIREME_ASSERT(values <= inputs_.slice().size);
    TRIREME_ASSERT(batch.inputs.size() == (batch.bytes.empty() ? values : 0));
    TRIREME_ASSERT(batch.labels.size() <= labels_.slice().size);
    device_.CheckReach(batch.inputs.data(), batch.inputs.size_bytes());
    device_.CheckReach(batch.labels.data(), batch.labels.size_bytes());
    inside.class_weights = {device_.Inside(class_weights_).data, batch.class_weights.size()};
    TRIREME_ASSERT(batch.class_weights.size() <= class_weights_.slice().size);
    device_.CheckReach(batch.class_weights.data(), batch.class_weights.size_bytes());
    inside.mixes = {reinterpret_cast<const LabelMix*>(device_.Inside(mixes_).data),
                    batch.mixes.size()};
    static_assert(sizeof(LabelMix) == 2 * sizeof(float));
    TRIREME_ASSERT(2 * batch.mixes.size() <= mixes_.slice().size);
    device_.CheckReach(batch.mixes.data(), batch.mixes.size_bytes());
    queue_.Do([inside, inputs = batch.inputs, given = batch.labels, weights = batch.class_weights,
               mixes = batch.mixes] {
      std::ranges::copy(mixes, const_cast<LabelMix*>(inside.mixes.data()));
      std::ranges::copy(weights, const_cast<float*>(inside.class_weights.data()));
      std::ranges::copy(inputs, const_cast<float*>(inside.inputs.data()));
      std::ranges::copy(given, const_cast<int32_t*>(inside.labels.data()));
    });
    if (!batch.bytes.empty()) Draw(batch.bytes, batch.count);
    return inside;
  }

  // Enqueues the way from bytes to inputs.
  void Draw(const ByteSamples& bytes, int count) {
    device_.CheckReach(bytes.samples.data(), bytes.samples.size_bytes());
    device_.CheckReach(bytes.numbers.data(), bytes.numbers.size_bytes());
    device_.CheckReach(bytes.changes.data(), bytes.changes.size_bytes());
    TRIREME_ASSERT(bytes.shape.size() == program_->graph.input().size());
    queue_.Do([this, bytes, count, shape = bytes.shape] {
      const float* const scale = device_.Inside(bytes.look).data;
      const ByteLook look{shape.height, shape.width, shape.channels, scale, scale + shape.channels};
      const auto* const set = reinterpret_cast<const uint8_t*>(device_.Inside(bytes.set).data);
      const auto size = size_t(look.size());
      for (size_t i = 0; i < size_t(count); ++i) {
        const uint8_t* const sample = bytes.numbers.empty() ? bytes.samples.data() + i * size
                                                            : set + size_t(bytes.numbers[i]) * size;
        DrawSample(sample, look, bytes.changes.empty() ? SampleChange() : bytes.changes[i],
                   device_.Inside(inputs_).data + i * size);
      }
    });
  }

  void Announce(Ready ready, int bucket) {
    if (announced_) ++*announced_;
    ready(program_->buckets[size_t(bucket)], queue_.Record());
  }

  // On the queue's thread.
  void Run(const Batch& batch, Slice state, Slice summand, bool accumulate, int first, int last) {
    calls_.Run(batch, device_.Inside(state).data, device_.Inside(summand).data, accumulate, first,
               last);
    if (batch.gradient_scale.size) {
      Overflow({device_.Inside(summand).data, summand.size}, first, last);
    }
    queue_.Spend(first < num_forward_ ? PretendWork::kForward : PretendWork::kBackward);
  }

  // Where the loss is scaled: gradients that float16 does not hold are infinite.
  void Overflow(std::span<float> summand, int first, int last) const {
    for (int i = first; i < last; ++i) {
      const Instruction& instruction = program_->instructions[size_t(i)];
      if (!instruction.op->writes_gradients) continue;
      for (const Range& range : instruction.parameters) {
        for (float& x : summand.subspan(range.begin, range.size)) {
          if (std::fabs(x) > kLargestHalf) x = std::copysign(kInfinity, x);
        }
      }
    }
  }

  static constexpr float kLargestHalf = 65504, kInfinity = std::numeric_limits<float>::infinity();

  PretendDevice& device_;
  PretendQueue& queue_;
  std::atomic<int>* const announced_;
  Team team_;  // of the queue's thread
  Buffer activations_, scratch_, inputs_, labels_, class_weights_, mixes_;
  cpu::CallList calls_;
  int num_forward_ = 0;  // instructions
  Handover sums_;        // of batch-norm over all shards
};

}  // namespace

PretendEngine::PretendEngine(PretendDevice& device, int threads, std::atomic<int>* announced)
    : device_(device), threads_(threads), cpu_(host_, 1), announced_(announced) {}

std::unique_ptr<Executable> PretendEngine::Load(std::shared_ptr<const Program> program,
                                                Queue& queue) {
  return std::make_unique<PretendExecutable>(std::move(program), cpu_.kernels(), device_, threads_,
                                             queue, announced_);
}

}  // namespace trireme
