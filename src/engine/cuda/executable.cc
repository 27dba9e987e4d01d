#include "engine/cuda/executable.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/assert.h"
#include "base/error.h"
#include "engine/cuda/call_list.h"
#include "engine/cuda/capture.h"
#include "engine/cuda/check.h"
#include "engine/cuda/room.h"
#include "engine/cuda/samples.h"

namespace trireme::cuda {
namespace {

constexpr double kTuneSeconds = 10;

class CudaExecutable : public Executable {
 public:
  CudaExecutable(std::shared_ptr<const Program> program, const Settings& settings, CudaQueue& queue)
      : Executable(std::move(program)),
        queue_(queue),
        context_(settings, queue, MostSums(*program_)),
        shares_(ChooseAndRequireRoom()),
        activations_(queue.card(), program_->activation_bytes, "activations"),
        slots_(MakeSlots()),
        numbers_(queue.card(), sizeof(ShardNumbers), "samples"),
        copies_(queue.card(), shares_.copies, "copies of weights and gradients"),
        scratch_(queue.card(), shares_.scratch, "scratch memory of the kernels"),
        aside_scratch_(queue.card(), shares_.aside_scratch, "scratch memory of the kernels"),
        aside_(queue.card(), /*yields=*/true),
        calls_(*program_, context_,
               {.activations = static_cast<std::byte*>(activations_.data()),
                .slots = {slots_[0].addresses(), slots_[1].addresses()},
                .numbers = static_cast<ShardNumbers*>(numbers_.data()),
                .copies = copies_.data(),
                .scratch = {static_cast<std::byte*>(scratch_.data()), scratch_.bytes()},
                .aside_scratch = {static_cast<std::byte*>(aside_scratch_.data()),
                                  aside_scratch_.bytes()}},
               settings.check, &aside_),
        captures_(!settings.check),
        replays_(queue.stream()),
        sample_queue_(queue.card()) {
    const auto& instructions = program_->instructions;
    num_forward_ =
        int(std::ranges::find_if(instructions, &Instruction::backward) - instructions.begin());
    for (int i = 0; i < num_forward_; ++i) {
      if (!instructions[size_t(i)].first_reads.empty()) readers_.push_back(i);
    }
  }

  ~CudaExecutable() override {
    try {
      queue_.Sync();
    } catch (const Error&) {  // was or will be told to whoever waits for an event
    }
  }

  Event RunShard(const Batch& batch, Slice state, Slice summand, bool accumulate,
                 Ready ready) override {
    const Layout& layout = program_->layout;
    TRIREME_ASSERT(state.size == layout.state && summand.size == layout.summand);
    queue_.card().Select();
    if (batch.unwritten) *batch.unwritten = {};
    if (batch.marks) *batch.marks = {.began = queue_.Mark()};
    const Event taken = TakeIn(batch);
    calls_.WriteNumbers(batch);
    if (batch.count > 0) {
      RunFilled({batch, state.data, summand.data, accumulate}, ready);
    } else {
      calls_.RunEmpty(summand.data, accumulate);
      if (batch.marks) batch.marks->border = queue_.Mark();
      const int weights = int(program_->buckets.size()) - 1;
      for (int i = 0; ready && i < weights; ++i) {
        ready(program_->buckets[size_t(i)], queue_.Record());
      }
    }
    if (batch.marks) batch.marks->ended = queue_.Mark();
    const Event ended = queue_.Record();
    slots_[size_t(slot_)].read = ended;
    if (ready) ready(program_->buckets.back(), ended);  // the tail
    return taken;
  }

  void Evaluate(const Batch& batch, Slice state, const Results& results) override {
    TRIREME_ASSERT(state.size == program_->layout.state);
    if (batch.count == 0) return;
    queue_.card().Select();
    TakeIn(batch);
    calls_.CopyWeights(state.data, 0, calls_.size());
    calls_.Run(batch, state.data, nullptr, false, 0, calls_.size());
    const auto copy = [&](const Operand& from, std::span<float> to) {
      if (to.empty()) return;
      TRIREME_ASSERT(to.size() == size_t(batch.count * from.spec.shape.size()));
      Check(cudaMemcpyAsync(to.data(), calls_.Find(from), to.size_bytes(), cudaMemcpyDeviceToHost,
                            queue_.stream()),
            "cudaMemcpyAsync");
    };
    copy(program_->logits, results.logits);
    copy(program_->probabilities, results.probabilities);
    copy(program_->losses, results.losses);
    queue_.Sync();
  }

  bool RunInstruction(const Batch& batch, Slice state, Slice summand, int index) override {
    queue_.card().Select();
    calls_.Run(batch, state.data, summand.data, false, index, index + 1);
    return true;
  }

  const Replays& replays() const { return replays_; }

 private:
  // Finds out how each product is computed, which decides how much memory it takes.
  Shares ChooseAndRequireRoom() {
    if (context_.choices && program_->mode == Mode::kTrain) {
      NeedsOf(*program_, context_, program_->capacity);  // asks for all of them
      std::vector<Tunable> tunables = context_.conv.Tunables();
      std::ranges::move(context_.gemm.Tunables(context_.stream()), std::back_inserter(tunables));
      Tune(std::move(tunables), queue_, kTuneSeconds, *context_.choices);
    }
    return RequireRoom(*program_, context_);
  }

  // Memory for the samples of a shard.
  struct Slot {
    CardMemory inputs, labels, class_weights, mixes;
    CardMemory bytes, numbers, changes;  // of samples that are drawn here, since the first came
    Event read;                          // the shard that read it last is done
    SampleSlot addresses() const {
      return {static_cast<float*>(inputs.data()), static_cast<int32_t*>(labels.data()),
              static_cast<float*>(class_weights.data()), static_cast<LabelMix*>(mixes.data())};
    }
  };

  // Evaluation waits for each batch: one is enough.
  std::array<Slot, kSlots> MakeSlots() {
    std::array<Slot, kSlots> slots;
    const size_t samples = size_t(program_->capacity);
    const size_t input = size_t(program_->graph.input().size()) * sizeof(float);
    for (int i = 0; i < SlotsOf(program_->mode); ++i) {
      slots[size_t(i)].inputs = CardMemory(queue_.card(), samples * input, "samples");
      slots[size_t(i)].labels = CardMemory(queue_.card(), samples * sizeof(int32_t), "samples");
      slots[size_t(i)].mixes = CardMemory(queue_.card(), samples * sizeof(LabelMix), "samples");
      slots[size_t(i)].class_weights = CardMemory(
          queue_.card(), size_t(program_->graph.num_classes()) * sizeof(float), "samples");
    }
    return slots;
  }

  // Samples come on a queue of their own, while the shard before is computed. Gives when the
  // batch's memory has been read.
  Event TakeIn(const Batch& batch) {
    TRIREME_ASSERT(batch.count >= 0 && batch.count <= program_->capacity);
    slot_ = (slot_ + 1) % SlotsOf(program_->mode);
    calls_.Use(slot_);
    Slot& slot = slots_[size_t(slot_)];
    if (slot.read.recorded()) sample_queue_.Wait(slot.read);
    CopySamples(slot.inputs, batch.inputs);
    CopySamples(slot.labels, batch.labels);
    CopySamples(slot.class_weights, batch.class_weights);
    CopySamples(slot.mixes, batch.mixes);
    if (!batch.bytes.empty()) Draw(batch.bytes, batch.count, slot);
    const Event taken = sample_queue_.Record();
    queue_.Wait(taken);
    return taken;
  }

  template <class T>
  void CopySamples(const CardMemory& to, std::span<T> from) {
    TRIREME_ASSERT(from.size_bytes() <= to.bytes());
    if (from.empty()) return;
    Check(cudaMemcpyAsync(to.data(), from.data(), from.size_bytes(), cudaMemcpyHostToDevice,
                          sample_queue_.stream()),
          "cudaMemcpyAsync");
  }

  // Bytes become what the network sees.
  void Draw(const ByteSamples& from, int count, Slot& slot) {
    const Shape& shape = from.shape;
    TRIREME_ASSERT(shape.size() == program_->graph.input().size());
    const size_t samples = size_t(program_->capacity);
    const auto take = [&]<class T>(CardMemory& to, std::span<T> given, size_t each) {
      if (given.empty()) return static_cast<T*>(nullptr);
      if (!to.data()) to = CardMemory(queue_.card(), samples * each * sizeof(T), "samples");
      CopySamples(to, given);
      return static_cast<T*>(to.data());
    };
    const uint8_t* const bytes = take(slot.bytes, from.samples, size_t(shape.size()));
    const float* const scale = from.look.data;
    LaunchDrawSamples(
        sample_queue_.stream(),
        {.bytes = bytes ? bytes : reinterpret_cast<const uint8_t*>(from.set.data),
         .numbers = take(slot.numbers, from.numbers, 1),
         .changes = take(slot.changes, from.changes, 1),
         .look = {shape.height, shape.width, shape.channels, scale, scale + shape.channels},
         .count = count},
        static_cast<float*>(slot.inputs.data()));
    CheckLaunch("samples of bytes");
  }

  // A shard with samples.
  struct Filled {
    const Batch& batch;
    const float* state;
    float* summand;
    bool accumulate;
  };

  // Enqueues instructions [first, last), and before them the copies of the weights that they read
  // first: as one graph, unless operations are watched one by one or ask other ranks.
  void RunStretch(const Filled& shard, int first, int last) {
    if (first == last) return;
    const auto enqueue = [&] {
      calls_.CopyWeights(shard.state, first, last);
      calls_.Run(shard.batch, shard.state, shard.summand, shard.accumulate, first, last);
    };
    if (!captures_ || shard.batch.sum_over_shards) return enqueue();
    replays_.Run({.first = first,
                  .last = last,
                  .samples = shard.batch.count,
                  .slot = slot_,
                  .accumulate = shard.accumulate,
                  .mixed = !shard.batch.mixes.empty(),
                  .state = shard.state,
                  .summand = shard.summand},
                 enqueue);
  }

  // In as few stretches as those who look on allow: weights that are still on their way, marks,
  // buckets that somebody waits for.
  void RunFilled(const Filled& shard, Ready ready) {
    int at = 0;
    const auto run = [&](int end) {
      RunStretch(shard, at, end);
      at = end;
    };
    ShardMarks* const marks = shard.batch.marks;
    for (const int reader : readers_) {
      if (!shard.batch.await_bucket) break;
      run(reader);
      const Event began = marks ? queue_.Mark() : Event();
      for (const int bucket : program_->instructions[size_t(reader)].first_reads) {
        queue_.Wait(shard.batch.await_bucket(program_->buckets[size_t(bucket)]));
      }
      if (marks) marks->waits.push_back({began, queue_.Mark()});
    }
    if (marks) {
      run(num_forward_);
      marks->border = queue_.Mark();
    }
    for (int i = num_forward_; ready && i < calls_.size(); ++i) {
      const Instruction& instruction = program_->instructions[size_t(i)];
      if (instruction.finishes.empty()) continue;
      run(i + 1);
      Announce(instruction, queue_, ready);
    }
    run(calls_.size());
  }

  CudaQueue& queue_;
  Context context_;
  const Shares shares_;
  const CardMemory activations_;
  std::array<Slot, kSlots> slots_;
  const CardMemory numbers_, copies_, scratch_, aside_scratch_;
  CudaQueue aside_;
  CallList calls_;
  const bool captures_;
  Replays replays_;
  CudaQueue sample_queue_;
  int slot_ = 0;  // of the last shard
  int num_forward_ = 0;
  std::vector<int> readers_;  // instructions with first_reads
};

}  // namespace

Captured CapturedBy(const Executable& executable) {
  const Replays& replays = static_cast<const CudaExecutable&>(executable).replays();
  return {replays.graphs(), replays.refusal()};
}

std::unique_ptr<Executable> MakeExecutable(std::shared_ptr<const Program> program,
                                           const Settings& settings, CudaQueue& queue) {
  queue.card().Select();
  return std::make_unique<CudaExecutable>(std::move(program), settings, queue);
}

}  // namespace trireme::cuda
