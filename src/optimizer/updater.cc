#include "optimizer/updater.h"

#include <array>
#include <string>

#include "base/assert.h"

namespace trireme {
namespace {

constexpr float kTrackMomentum = 0.1f;  // of running statistics: PyTorch's default

std::string KeyOf(const char* name) { return std::string("optimizer.") + name; }

}  // namespace

Updater::Updater(const OptimizerOptions& options, const Schedule& schedule, const Layout& layout,
                 Device& device)
    : schedule_(schedule),
      rule_(MakeRule(options)),
      segments_(CutSegments(layout, options.weight_decay != 0)),
      weights_(layout.weights),
      statistics_(layout.state - layout.weights),
      clip_(float(options.clip)),
      verdict_(device, Verdict::kSize) {
  for (const char* name : rule_->keeps()) {
    memory_.emplace_back(device, weights_);
    own_.push_back(memory_.back());
    named_.push_back({name, memory_.back()});
  }
}

void Updater::Apply(Queue& queue, int64_t step, Slice summand, Slice state) {
  TRIREME_ASSERT(state.size == weights_ + statistics_ && summand.size >= state.size);
  const Update update = {.rate = schedule_.rate(step),
                         .count = ++count_,
                         .segments = segments_,
                         .verdict = verdict_,
                         .gradients = summand.Sub(0, weights_),
                         .weights = state.Sub(0, weights_),
                         .own = own_};
  const Slice seen = summand.Sub(weights_, statistics_);
  flat::Guard(queue, update.gradients, seen, clip_, verdict_);
  rule_->Apply(queue, update);
  if (statistics_ > 0) {
    flat::Track(queue, kTrackMomentum, verdict_, seen, state.Sub(weights_, statistics_));
  }
}

void Updater::Reset(Queue& queue) {
  for (const Slice& slice : own_) flat::Fill(queue, 0, slice);
  count_ = 0;
}

int64_t Updater::Skipped(Queue& queue) const {
  std::array<float, Verdict::kSize> verdict;
  flat::Get(queue, verdict_, verdict);
  queue.Sync();
  return int64_t(verdict[Verdict::kSkipped]);
}

void Updater::Save(Queue& queue, StateWriter& writer) const {
  std::vector<float> host(own_.empty() ? 0 : weights_);
  for (const Named& own : named_) {
    flat::Get(queue, own.slice, host);
    queue.Sync();
    writer.Tensor(KeyOf(own.name), std::array{int64_t(weights_)}, host);
  }
  writer.Int(KeyOf("updates"), count_);
  writer.Int(KeyOf("skipped"), Skipped(queue));
}

void Updater::Load(Queue& queue, const StateReader& reader) {
  std::vector<float> host(own_.empty() ? 0 : weights_);
  for (const Named& own : named_) {
    reader.Tensor(KeyOf(own.name), std::array{int64_t(weights_)}, host);
    flat::Put(queue, host, own.slice);
    queue.Sync();
  }
  count_ = reader.Int(KeyOf("updates"));
  const std::array<float, Verdict::kSize> verdict = {1, float(reader.Int(KeyOf("skipped")))};
  flat::Put(queue, verdict, verdict_);
  queue.Sync();
}

}  // namespace trireme
