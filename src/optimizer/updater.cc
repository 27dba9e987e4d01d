#include "optimizer/updater.h"

#include <array>
#include <string>

#include "base/assert.h"
#include "base/error.h"
#include "flat/staging.h"

namespace trireme {
namespace {

constexpr float kTrackMomentum = 0.1f;  // of running statistics: PyTorch's default

// Weight decay spares biases and norms. No block holds two parameters: each begins at a new one.
std::vector<float> BlockDecays(const Layout& layout, float decay) {
  constexpr size_t kBlock = Layout::kAlignment;
  std::vector<float> decays((layout.weights + kBlock - 1) / kBlock);
  for (size_t p = 0; p < layout.parameters.size(); ++p) {
    const Range range = layout.parameters[p];
    TRIREME_ASSERT(range.begin % kBlock == 0 && range.end() <= layout.weights);
    for (size_t at = range.begin; layout.decays[p] && at < range.end(); at += kBlock) {
      decays[at / kBlock] = decay;
    }
  }
  return decays;
}

std::string KeyOf(const char* name) { return std::string("optimizer.") + name; }

int64_t LoadCount(const StateReader& reader, const char* name) {
  const int64_t count = reader.Int(KeyOf(name));
  if (count < 0) throw Error("checkpoint: {} must be at least 0, got {}", KeyOf(name), count);
  return count;
}

}  // namespace

Updater::Updater(const OptimizerOptions& options, const Schedule& schedule, const Layout& layout,
                 Device& device)
    : schedule_(schedule),
      rule_(MakeRule(options)),
      weights_(layout.weights),
      statistics_(layout.state - layout.weights),
      clip_(float(options.clip)),
      scale_(device, UpdateScale::kSize) {
  if (options.weight_decay != 0) {
    const std::vector<float> decays = BlockDecays(layout, float(options.weight_decay));
    decays_ = Buffer(device, decays.size());
    const std::unique_ptr<Queue> queue = device.NewQueue();
    flat::PutNow(*queue, decays, decays_);
  }
  for (const char* name : rule_->keeps()) {
    memory_.emplace_back(device, weights_);
    own_.push_back(memory_.back());
    named_.push_back({name, memory_.back()});
  }
}

void Updater::Apply(Queue& queue, int64_t step, Gradient summand, Slice state) {
  TRIREME_ASSERT(state.size == weights_ + statistics_ && summand.values.size >= state.size);
  const Update update = {.rate = schedule_.rate(step),
                         .count = ++count_,
                         .scale = scale_,
                         .decays = decays_,
                         .gradients = summand.First(weights_),
                         .weights = state.Sub(0, weights_),
                         .own = own_};
  const Slice seen = summand.values.Sub(weights_, statistics_);
  flat::CheckAndClip(queue, update.gradients, seen, clip_, scale_);
  rule_->Apply(queue, update);
  if (statistics_ > 0) {
    flat::Track(queue, kTrackMomentum, scale_, seen, state.Sub(weights_, statistics_));
  }
}

void Updater::ApplyMove(Queue& queue, Slice summand, Slice state) {
  const Slice moves = summand.Sub(0, weights_), seen = summand.Sub(weights_, statistics_);
  flat::CheckAndClip(queue, moves, seen, 0, scale_);
  const SgdRates forward{.rate = -1, .momentum = 0, .nesterov = false};
  flat::Update(queue, forward, scale_, {}, moves, {}, state.Sub(0, weights_));
  if (statistics_ > 0) {
    flat::Track(queue, kTrackMomentum, scale_, seen, state.Sub(weights_, statistics_));
  }
}

void Updater::Reset(Queue& queue) {
  for (const Slice& slice : own_) flat::Fill(queue, 0, slice);
  count_ = 0;
}

int64_t Updater::Skipped(Queue& queue) const {
  std::array<float, UpdateScale::kSize> scale;
  flat::GetNow(queue, scale_, scale);
  return int64_t(scale[UpdateScale::kSkipped]);
}

void Updater::Save(Queue& queue, StateWriter& writer) const {
  std::vector<float> host(own_.empty() ? 0 : weights_);
  for (const Named& own : named_) {
    flat::GetNow(queue, own.slice, host);
    writer.Tensor(KeyOf(own.name), std::array{int64_t(weights_)}, host);
  }
  writer.Int(KeyOf("updates"), count_);
  writer.Int(KeyOf("skipped"), Skipped(queue));
}

void Updater::Load(Queue& queue, const StateReader& reader) {
  std::vector<float> host(own_.empty() ? 0 : weights_);
  for (const Named& own : named_) {
    reader.Tensor(KeyOf(own.name), std::array{int64_t(weights_)}, host);
    flat::PutNow(queue, host, own.slice);
  }
  count_ = LoadCount(reader, "updates");
  const std::array<float, UpdateScale::kSize> scale = {1, float(LoadCount(reader, "skipped"))};
  flat::PutNow(queue, scale, scale_);
}

}  // namespace trireme
