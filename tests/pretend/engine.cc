#include "pretend/engine.h"

#include <algorithm>
#include <mutex>

#include "base/assert.h"
#include "base/clock.h"
#include "engine/cpu/call_list.h"

namespace trireme {
namespace {

class PretendExecutable : public Executable {
 public:
  PretendExecutable(std::shared_ptr<const Program> program, const cpu::KernelTable& kernels,
                    PretendDevice& device, int threads, Queue& queue)
      : Executable(std::move(program)),
        device_(device),
        queue_(static_cast<PretendQueue&>(queue)),
        team_(threads),
        activations_(device, program_->activation_bytes / sizeof(float) + 1),
        scratch_(device, cpu::CallList::ScratchFloats(*program_, kernels, threads)),
        inputs_(device, size_t(program_->capacity) * size_t(program_->graph.input().size())),
        labels_(device, size_t(program_->capacity)),
        calls_(*program_, kernels, team_,
               reinterpret_cast<std::byte*>(device.Inside(activations_).data),
               device.Inside(scratch_).data) {
    TRIREME_ASSERT(&queue.device() == &device);
  }
  ~PretendExecutable() override { queue_.Sync(); }

  Event RunShard(const Batch& batch, Slice state, Slice summand, bool accumulate,
                 Ready ready) override {
    const Layout& layout = program_->layout;
    TRIREME_ASSERT(state.size == layout.state && summand.size == layout.summand);
    const auto& instructions = program_->instructions;
    const Batch inside = TakeIn(batch);
    const Event taken = queue_.Record();
    const auto run = [&](int first, int last) {
      queue_.Do([=, this] { Run(inside, state, summand, accumulate, first, last); });
    };
    int at = 0;
    for (int i = 0; i < calls_.size(); ++i) {
      if (batch.await_bucket && batch.count > 0 && !instructions[size_t(i)].first_reads.empty()) {
        if (at < i) run(at, i);
        at = i;
        for (const int bucket : instructions[size_t(i)].first_reads) {
          queue_.Wait(batch.await_bucket(program_->buckets[size_t(bucket)]));
        }
      }
      if (instructions[size_t(i)].finishes < 0) continue;
      run(at, i + 1);
      at = i + 1;
      if (ready)
        ready(program_->buckets[size_t(instructions[size_t(i)].finishes)], queue_.Record());
    }
    if (at < calls_.size()) run(at, calls_.size());
    if (ready) ready(program_->buckets.back(), queue_.Record());  // the tail
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

  ShardTimes last_times() const override {
    const std::lock_guard lock(mutex_);
    return times_;
  }

 private:
  // Enqueues a copy of the samples; gives the batch as the kernels will see it.
  Batch TakeIn(const Batch& batch) {
    const auto* labels = reinterpret_cast<const int32_t*>(device_.Inside(labels_).data);
    Batch inside = batch;
    inside.inputs = {device_.Inside(inputs_).data, batch.inputs.size()};
    inside.labels = {labels, batch.labels.size()};
    TRIREME_ASSERT(batch.inputs.size() <= inputs_.slice().size);
    TRIREME_ASSERT(batch.labels.size() <= labels_.slice().size);
    device_.CheckReach(batch.inputs.data(), batch.inputs.size_bytes());
    device_.CheckReach(batch.labels.data(), batch.labels.size_bytes());
    queue_.Do([inside, inputs = batch.inputs, given = batch.labels] {
      std::ranges::copy(inputs, const_cast<float*>(inside.inputs.data()));
      std::ranges::copy(given, const_cast<int32_t*>(inside.labels.data()));
    });
    return inside;
  }

  // On the queue's thread. All that is not of forward alone counts as backward.
  void Run(const Batch& batch, Slice state, Slice summand, bool accumulate, int first, int last) {
    const Stopwatch watch;
    calls_.Run(batch, device_.Inside(state).data, device_.Inside(summand).data, accumulate, first,
               last);
    const std::lock_guard lock(mutex_);
    if (first == 0) times_ = {};
    const bool backward = first > 0 && program_->instructions[size_t(last - 1)].backward;
    (backward ? times_.backward_s : times_.forward_s) += watch.seconds();
  }

  PretendDevice& device_;
  PretendQueue& queue_;
  Team team_;  // of the queue's thread
  Buffer activations_, scratch_, inputs_, labels_;
  cpu::CallList calls_;
  mutable std::mutex mutex_;
  ShardTimes times_;  // guarded by mutex_
};

}  // namespace

PretendEngine::PretendEngine(PretendDevice& device, int threads)
    : device_(device), threads_(threads), cpu_(host_, 1) {}

std::unique_ptr<Executable> PretendEngine::Load(std::shared_ptr<const Program> program,
                                                Queue& queue) {
  return std::make_unique<PretendExecutable>(std::move(program), cpu_.kernels(), device_, threads_,
                                             queue);
}

}  // namespace trireme
