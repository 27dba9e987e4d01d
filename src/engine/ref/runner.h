#pragma once
#include <map>
#include <span>
#include <vector>

#include "engine/ref/kernel.h"
#include "graph/program.h"

namespace trireme::ref {

// Runs a program in double precision: the judge of the other engines. Every value has memory of its
// own, so the judge of the memory plan, too. A fused operation is computed part by part. One thread
// at a time.
class Runner {
 public:
  // What is held in 16 bits: kJudged, only inside a chain, as what an operation makes is compared
  // with what it should be; kRounded, whatever an operation makes.
  enum class Narrow { kJudged, kRounded };
  explicit Runner(const Program& program, Narrow narrow = Narrow::kJudged);  // which outlives it

  // A value that no instruction makes (a single operation under test). Without this value 0 is
  // taken from the batch.
  void Set(ValueId value, std::vector<double> numbers);

  // All instructions. `state` and `summand` are laid out as program.layout says; `summand` is
  // overwritten, or with `accumulate` added to.
  void Run(const Batch& batch, std::span<const double> state, std::span<double> summand,
           bool accumulate);

  // After Run: count times the value's shape (once, if it is the shard's). Views have the values of
  // what they show.
  const std::vector<double>& value(ValueId value) const { return values_[stored_[value]]; }

  double forward_s() const { return forward_s_; }
  double backward_s() const { return backward_s_; }

 private:
  struct Slices {
    const Batch& batch;
    std::span<const double> state;
    std::span<double> summand;
  };
  Tensor Open(const Operand& operand, int64_t samples);
  void Execute(const Instruction& instruction, const Slices& slices);
  void Round(const Operand& operand);  // to 16 bits, if it is stored so
  Call MakeCall(const Instruction& instruction, const Slices& slices);
  void FindViews(std::span<const Node> nodes);

  const Program& program_;
  const Narrow narrow_;
  std::vector<ValueId> stored_;  // by value: itself, or what it is a view of
  std::vector<std::vector<double>> values_;
  double forward_s_ = 0, backward_s_ = 0;
};

}  // namespace trireme::ref
