#include "optimizer/lbfgs.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/assert.h"
#include "base/error.h"

namespace trireme {
namespace {

// Of |s| |y|: below, rounding decides about the sign of s.y.
constexpr double kLeastCurvature = 1e-10;
constexpr int kLevel = 5;  // iterations without gain after which there is none to come

}  // namespace

Lbfgs::Lbfgs(const Options& options, Objective& objective)
    : options_(options), f_(objective), curvature_(size_t(options.history)) {
  TRIREME_ASSERT(options.history > 0);
}

void Lbfgs::Begin() { value_ = f_.Evaluate(kPoint, kGradient); }

int Lbfgs::Slot(int age) const {
  return (next_slot_ - 1 - age + 2 * options_.history) % options_.history;
}

// The two-loop recursion (Nocedal 1980): direction = - H gradient.
void Lbfgs::Direct() {
  f_.Copy(kGradient, kDirection);
  std::vector<double> taken(size_t(options_.history));
  for (int age = 0; age < pairs_; ++age) {
    const int slot = Slot(age);
    taken[size_t(slot)] = f_.Dot(S(slot), kDirection) / curvature_[size_t(slot)];
    f_.Axpy(-taken[size_t(slot)], Y(slot), kDirection);
  }
  f_.Scale(pairs_ ? -scale_ : -1, kDirection);
  for (int age = pairs_ - 1; age >= 0; --age) {
    const int slot = Slot(age);
    const double back = f_.Dot(Y(slot), kDirection) / curvature_[size_t(slot)];
    f_.Axpy(-taken[size_t(slot)] - back, S(slot), kDirection);
  }
}

// s = point - start of the line, y = change of the gradient. Without positive curvature the pair
// would make the next direction lead upwards.
bool Lbfgs::KeepPair() {
  const int slot = next_slot_;
  if (pairs_ == options_.history) --pairs_;  // the oldest lies there
  f_.Copy(kPoint, S(slot));
  f_.Axpy(-1, kLineStart, S(slot));
  f_.Copy(kGradient, Y(slot));
  f_.Axpy(-1, kStartGradient, Y(slot));
  const double sy = f_.Dot(S(slot), Y(slot));
  const double ss = f_.Dot(S(slot), S(slot)), yy = f_.Dot(Y(slot), Y(slot));
  if (!(sy > kLeastCurvature * std::sqrt(ss * yy))) return false;
  curvature_[size_t(slot)] = sy;
  scale_ = sy / yy;
  next_slot_ = (slot + 1) % options_.history;
  ++pairs_;
  return true;
}

Lbfgs::Iteration Lbfgs::TakeStep() {
  Direct();
  const double slope = f_.Dot(kGradient, kDirection);
  if (!(slope < 0)) return {};
  f_.Copy(kPoint, kLineStart);
  f_.Copy(kGradient, kStartGradient);
  const auto evaluate = [&](double step) {
    f_.Copy(kLineStart, kPoint);
    f_.Axpy(step, kDirection, kPoint);
    LinePoint at{.step = step, .value = f_.Evaluate(kPoint, kGradient)};
    at.slope = f_.Dot(kGradient, kDirection);
    if (!std::isfinite(at.value) || !std::isfinite(at.slope)) {
      at.value = at.slope = std::numeric_limits<double>::infinity();
    }
    return at;
  };
  // A direction with pairs has the right length by itself; the bare gradient says nothing of it.
  const double first = pairs_ ? 1 : 1 / std::sqrt(-slope);
  const LineSearchResult found = SearchLine(options_.line, {0, value_, slope}, first, evaluate);
  Iteration done{.step = found.at.step, .evaluations = found.evaluations, .wolfe = found.wolfe};
  if (done.step == 0) {
    f_.Copy(kLineStart, kPoint);
    f_.Copy(kStartGradient, kGradient);
    return done;
  }
  value_ = found.at.value;
  if (!found.last) {
    value_ = evaluate(done.step).value;
    ++done.evaluations;
  }
  done.kept = KeepPair();
  return done;
}

Lbfgs::Iteration Lbfgs::Iterate() {
  const double before = value_;
  Iteration done = TakeStep();
  if (done.step == 0 && pairs_) {  // the pairs mislead: once more along the gradient
    pairs_ = 0;
    const int evaluations = done.evaluations;
    done = TakeStep();
    done.evaluations += evaluations;
  }
  level_ = before - value_ > options_.line.noise * std::fabs(before) ? 0 : level_ + 1;
  converged_ = done.step == 0 || level_ >= kLevel;
  return done;
}

std::vector<int> Lbfgs::LivingPairs() const {
  std::vector<int> vectors;
  for (int age = pairs_ - 1; age >= 0; --age) {
    vectors.push_back(S(Slot(age)));
    vectors.push_back(Y(Slot(age)));
  }
  return vectors;
}

void Lbfgs::Save(StateWriter& writer) const {
  writer.Real("lbfgs.value", value_);
  writer.Real("lbfgs.scale", scale_);
  writer.Int("lbfgs.converged", converged_);
  writer.Int("lbfgs.level", level_);
  writer.Int("lbfgs.pairs", pairs_);
  writer.Int("lbfgs.next_slot", next_slot_);
  std::vector<int64_t> bits;
  for (const double sy : curvature_) bits.push_back(std::bit_cast<int64_t>(sy));
  writer.Ints("lbfgs.curvature", bits);
}

void Lbfgs::Load(const StateReader& reader) {
  const std::vector<int64_t> bits = reader.Ints("lbfgs.curvature");
  const int64_t pairs = reader.Int("lbfgs.pairs"), next = reader.Int("lbfgs.next_slot");
  const int64_t history = options_.history;
  if (int64_t(bits.size()) != history || pairs < 0 || pairs > history || next < 0 ||
      next >= history) {
    throw Error("the checkpoint has {} pairs in {} places, next {}; optimizer.history is {}", pairs,
                bits.size(), next, history);
  }
  value_ = reader.Real("lbfgs.value");
  scale_ = reader.Real("lbfgs.scale");
  converged_ = reader.Int("lbfgs.converged") != 0;
  level_ = int(reader.Int("lbfgs.level"));
  pairs_ = int(pairs);
  next_slot_ = int(next);
  for (size_t i = 0; i < bits.size(); ++i) curvature_[i] = std::bit_cast<double>(bits[i]);
}

}  // namespace trireme
