#include "optimizer/updater.h"

#include <array>
#include <map>
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
    if (layout.IsFrozen(range)) continue;
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

float LoadLossScale(const StateReader& reader) {
  const std::string key = KeyOf("loss_scale");
  const double scale = reader.Real(key);
  if (scale >= LossScaling::kLeast && scale <= LossScaling::kMost) return float(scale);
  throw Error("checkpoint: {} must be from {:g} to {:g}, got {:g}", key, LossScaling::kLeast,
              LossScaling::kMost, scale);
}

LossScaling LossScalingOf(const OptimizerOptions& options) {
  return {.growth = float(options.loss_scale_growth),
          .backoff = float(options.loss_scale_backoff),
          .interval = options.scales_loss ? options.loss_scale_steps : 0};
}

}  // namespace

Updater::Updater(const OptimizerOptions& options, const Schedule& schedule, const Layout& layout,
                 Device& device)
    : schedule_(schedule),
      rule_(MakeRule(options)),
      by_tensor_(FindRule(options.name).by_tensor),
      weights_(layout.weights),
      statistics_(layout.trained() - layout.weights),
      clip_(float(options.clip)),
      loss_(LossScalingOf(options)),
      scale_(device, UpdateScale::kSize) {
  const std::unique_ptr<Queue> queue = device.NewQueue();
  if (options.weight_decay != 0) {
    const std::vector<float> decays = BlockDecays(layout, float(options.weight_decay));
    decays_ = Buffer(device, decays.size());
    flat::PutNow(*queue, decays, decays_);
  }
  if (loss_.on()) flat::PutNow(*queue, std::array{float(options.loss_scale)}, loss_scale());
  for (const char* name : rule_->keeps()) {
    memory_.emplace_back(device, weights_);
    own_.push_back(memory_.back());
    named_.push_back({name, memory_.back()});
  }
  for (size_t i = 0; i < rule_->spare(); ++i) {
    own_.push_back(memory_.emplace_back(device, weights_));
  }
  rule_->Prepare(layout, device);
  MakeStretches(layout);
}

// A rule that goes by tensors knows their rates itself. Gaps belong to what is before them.
void Updater::MakeStretches(const Layout& layout) {
  std::map<size_t, double> rates;  // by where parameters begin
  for (size_t p = 0; p < layout.parameters.size() && !by_tensor_; ++p) {
    if (!layout.IsFrozen(layout.parameters[p])) {
      rates[layout.parameters[p].begin] = layout.rate(p);
    }
  }
  stretches_ = {{.range = {0, weights_}}};
  for (const auto& [begin, rate] : rates) {
    Stretch& last = stretches_.back();
    if (begin == last.range.begin) {
      last.rate = rate;
    } else if (rate != last.rate) {
      last.range.size = begin - last.range.begin;
      stretches_.push_back({.range = {begin, weights_ - begin}, .rate = rate});
    }
  }
  constexpr size_t kBlock = Layout::kAlignment;
  for (Stretch& stretch : stretches_) {
    const auto [begin, size] = stretch.range;
    if (const Slice all = decays_; all.size > 0) {
      stretch.decays = all.Sub(begin / kBlock, (size + kBlock - 1) / kBlock);
    }
    for (const Slice& own : own_) stretch.own.push_back(own.Sub(begin, size));
  }
}

void Updater::Apply(Queue& queue, int64_t step, Gradient summand, Slice state) {
  TRIREME_ASSERT(state.size == weights_ + statistics_ && summand.values.size >= state.size);
  const Gradient gradients = summand.First(weights_);
  const Slice weights = state.Sub(0, weights_);
  const Slice seen = summand.values.Sub(weights_, statistics_);
  flat::CheckAndClip(queue, gradients, seen, clip_, loss_, scale_);
  ++count_;
  for (const Stretch& stretch : stretches_) {
    const auto [begin, size] = stretch.range;
    const bool whole = size == weights_;
    rule_->Apply(queue,
                 {.rate = rate(step) * stretch.rate,
                  .count = count_,
                  .scale = scale_,
                  .decays = stretch.decays,
                  .gradients = whole ? gradients : Gradient(gradients.values.Sub(begin, size)),
                  .weights = weights.Sub(begin, size),
                  .own = stretch.own});
  }
  if (statistics_ > 0) {
    flat::Track(queue, kTrackMomentum, scale_, seen, state.Sub(weights_, statistics_));
  }
}

void Updater::Check(Queue& queue, Slice summand) {
  flat::CheckAndClip(queue, summand.Sub(0, weights_), summand.Sub(weights_, statistics_), 0, loss_,
                     scale_);
}

void Updater::ApplyMove(Queue& queue, Slice summand, Slice state) {
  const Slice moves = summand.Sub(0, weights_), seen = summand.Sub(weights_, statistics_);
  LossScaling loss = loss_;
  loss.unscales = false;
  flat::CheckAndClip(queue, moves, seen, 0, loss, scale_);
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

Updater::ScaleOnHost Updater::GetScale(Queue& queue) const {
  ScaleOnHost scale;
  flat::GetNow(queue, scale_, scale);
  return scale;
}

int64_t Updater::Skipped(Queue& queue) const {
  return int64_t(GetScale(queue)[UpdateScale::kSkipped]);
}

void Updater::Save(Queue& queue, StateWriter& writer) const {
  std::vector<float> host(named_.empty() ? 0 : weights_);
  for (const Named& own : named_) {
    flat::GetNow(queue, own.slice, host);
    writer.Tensor(KeyOf(own.name), std::array{int64_t(weights_)}, host);
  }
  const ScaleOnHost scale = GetScale(queue);
  writer.Int(KeyOf("updates"), count_);
  writer.Int(KeyOf("skipped"), int64_t(scale[UpdateScale::kSkipped]));
  if (!loss_.on()) return;
  writer.Real(KeyOf("loss_scale"), double(scale[UpdateScale::kLoss]));
  writer.Int(KeyOf("loss_scale_steps"), int64_t(scale[UpdateScale::kFinite]));
}

void Updater::Load(Queue& queue, const StateReader& reader) {
  std::vector<float> host(named_.empty() ? 0 : weights_);
  for (const Named& own : named_) {
    reader.Tensor(KeyOf(own.name), std::array{int64_t(weights_)}, host);
    flat::PutNow(queue, host, own.slice);
  }
  count_ = LoadCount(reader, "updates");
  ScaleOnHost scale = GetScale(queue);
  scale[UpdateScale::kSkipped] = float(LoadCount(reader, "skipped"));
  if (loss_.on() && reader.Has(KeyOf("loss_scale"))) {  // else the run was not in float16 so far
    scale[UpdateScale::kLoss] = LoadLossScale(reader);
    scale[UpdateScale::kFinite] = float(LoadCount(reader, "loss_scale_steps"));
  }
  flat::PutNow(queue, scale, scale_);
}

}  // namespace trireme
