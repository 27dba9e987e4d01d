#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/label.h"
#include "base/sample_change.h"
#include "flat/device.h"
#include "flat/gradient.h"
#include "graph/program.h"

namespace trireme {

// When a shard's work ran, as marks of its queue: where work runs late they are known later.
struct ShardMarks {
  struct Wait {
    Event began, ended;
  };
  Event began;              // before the first work, copies of the samples too
  Event border;             // between forward and backward
  Event ended;              // after the last instruction
  std::vector<Wait> waits;  // for weights (Batch::await_bucket), inside forward: no computing
};

// Samples as bytes, which the engine normalises and changes as base/sample_change.h says. Their
// memory is of the same kind as a batch's, but for what lies on the device.
struct ByteSamples {
  Shape shape = {};                            // of a picture, also where the network sees a row
  std::span<const uint8_t> samples = {};       // one after the other; or
  Slice set = {};                              // a set of them on the device, ...
  std::span<const int32_t> numbers = {};       // ... and which of it they are
  std::span<const SampleChange> changes = {};  // of each; empty: there are none
  Slice look = {};                             // on the device: scales of all channels, then shifts

  bool empty() const { return samples.empty() && numbers.empty(); }
};

// The samples of one shard, in host memory that the engine's device reaches by itself
// (flat/host_memory.h).
struct Batch {
  std::span<const float> inputs;    // count samples, NHWC
  std::span<const int32_t> labels;  // count; of a single output the bits of numbers (base/label.h)
  int count = 0;
  ByteSamples bytes = {};                // instead of inputs, for an engine that takes them
  std::span<const LabelMix> mixes = {};  // count, of classes; empty: no sample is mixed
  // What the loss of a sample counts, by its class; empty: 1. Stays as it is while the executable
  // has work.
  std::span<const float> class_weights = {};
  float loss_scale = 1;        // 1 / samples of the step over all ranks
  float statistics_scale = 1;  // 1 / shards of the step that are not empty
  uint64_t random_key = 0;     // of (seed, epoch): dropout draws from it by position
  float vote = 0;              // travels beside the loss: ranks that add up sums agree on it
  int64_t first_position = 0;  // sample i stands at position first_position + i
  // Empty, or a number in the memory of the engine's device: what the gradient of the loss is
  // multiplied by besides (Updater::loss_scale). Read when the work runs.
  Slice gradient_scale = {};
  float ScaleOnHost() const { return gradient_scale.size ? *gradient_scale.data : 1; }
  // Null, or sums over the shards of all ranks that compute this step at the same time, each with
  // at least one sample: batch-norm then sees the whole step. Takes host memory, is called on the
  // thread of RunShard, by every rank in the same order, and lives no longer than that call: where
  // work runs late, RunShard waits until the device has its own part on the host, calls, and
  // enqueues the way back. It may throw; RunShard then does.
  FunctionRef<void(std::span<double>)> sum_over_shards = {};
  // Null, or takes what an engine then may leave unwritten of the summand: gradients that cost less
  // to form where they are used. They stay alive until the next shard. Not with `accumulate`.
  std::span<const OuterProduct>* unwritten = nullptr;
  // Null, or new weights are still on their way. Called on the thread of RunShard before the first
  // instruction that reads a bucket of the state is enqueued (Instruction::first_reads): blocks
  // until the bucket's arrival is enqueued somewhere, and the executable's queue waits for the
  // event before that instruction. That is no computing (ShardMarks). An empty shard reads nothing.
  FunctionRef<Event(const Bucket&)> await_bucket = {};
  // Null, or takes when this shard ran; nothing else measures it.
  ShardMarks* marks = nullptr;
};

// A fusion that an engine can compute: a chain of nodes of the operation's parts, each the only
// reader of the first output before it, becomes one node.
struct Fusion {
  const OpDef* op;
  // Is a chain worth it? Asks for shapes, attributes and the capacity, never for names: the same
  // network described differently is fused in the same way. Null: always.
  std::function<bool(const Graph&, std::span<const Node* const> chain, int capacity)> worth = {};
};

// Operands of a kernel that it takes in 16 bits as well as in float32: bit i stands for operand i.
struct NarrowOperands {
  unsigned inputs = 0, outputs = 0;
  bool alike = true;  // all of them or none
};

// Called when the last gradient of a bucket and of all before it is enqueued, in bucket order, on
// the thread of RunShard.
using Ready = FunctionRef<void(const Bucket&, const Event&)>;

// A program with its activations, ready to run on one queue. One thread at a time.
class Executable {
 public:
  virtual ~Executable() = default;

  // Forward, loss, backward. Writes (or with `accumulate` adds) the shard's summand; an empty
  // shard writes zeros. Returns when the work is enqueued; the event fires when the batch's memory
  // may be reused. `ready` may be null (a shard that is not the step's last, or nobody listens).
  virtual Event RunShard(const Batch& batch, Slice state, Slice summand, bool accumulate,
                         Ready ready) = 0;

  // Forward in evaluation mode (a program of Mode::kEvaluate). Blocks; the results are in host
  // memory of the same kind as the batch: count * classes logits and probabilities, count losses
  // (unscaled). Empty spans are not filled.
  struct Results {
    std::span<float> logits, probabilities, losses;
  };
  virtual void Evaluate(const Batch& batch, Slice state, const Results& results) = 0;

  // One instruction of a training program alone, to time it; enqueued like a shard. What it reads
  // is what the last shard left. False: this engine cannot, and nothing was done.
  virtual bool RunInstruction(const Batch&, Slice /*state*/, Slice /*summand*/, int /*index*/) {
    return false;
  }

  const Program& program() const { return *program_; }

 protected:
  explicit Executable(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

  // Announces the buckets that are final once the instruction, the last on the queue, is done.
  void Announce(const Instruction& instruction, Queue& queue, Ready ready) const {
    if (!ready || instruction.finishes.empty()) return;
    const Event done = queue.Record();
    for (const int bucket : instruction.finishes) ready(program_->buckets[size_t(bucket)], done);
  }

  const std::shared_ptr<const Program> program_;
};

// Who computes. Thread-safe; what Load returns is not.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view target() const = 0;  // instruction set: equal bits only among equals
  virtual Device& device() = 0;
  virtual bool Computes(std::string_view op) const = 0;
  virtual std::span<const Fusion> fusions() const = 0;  // longer chains are tried first
  // Decides how operations are computed that it can compute in several ways: Attributes::choice, a
  // number that only this engine reads, and Node::how. Says what it decided; empty: there was no
  // choice.
  virtual std::string Choose(Graph&) const { return ""; }
  // What the node's kernel takes in 16 bits (of the type `narrow`), after Choose; asked of all
  // nodes but views. Nothing: all values stay float32.
  virtual Element narrow() const { return Element::kBFloat; }
  virtual NarrowOperands NarrowOperandsOf(const Node&) const { return {}; }
  // For how many nodes after it what a node reads stays as it is: it may still run beside them.
  virtual int Lingers(const Graph&, const Node&, int /*capacity*/) const { return 0; }
  virtual size_t alignment() const { return 64; }  // bytes, of values in a program's activations
  virtual std::unique_ptr<Executable> Load(std::shared_ptr<const Program> program,
                                           Queue& queue) = 0;
  virtual bool takes_bytes() const { return false; }  // Batch::bytes instead of inputs
  // Samples that it evaluates at once, if there are so many: fewer keep it waiting for the host.
  virtual int evaluation_samples() const { return 1; }
  // What Load would take beside the program's activations; nothing is taken.
  virtual size_t ScratchBytes(const Program&) const { return 0; }
};

}  // namespace trireme
