#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flat/arithmetic.h"
#include "optimizer/options.h"

namespace trireme {

// One update as a rule sees it.
struct Update {
  double rate = 0;
  int64_t count = 1;  // of updates since the rule's slices were zero, this one included
  Slice scale;        // from flat::CheckAndClip
  Slice decays;       // by block of weights; empty: none
  Gradient gradients;
  Slice weights;
  std::span<const Slice> own;  // in the order of keeps(), then the spare ones
};

// How weights follow gradients. Apply allocates nothing.
class Rule {
 public:
  virtual ~Rule() = default;
  // Names of its slices, as long as the weights; behind them come so many without a name, in which
  // nothing lasts from one update to the next.
  virtual std::span<const char* const> keeps() const = 0;
  virtual size_t spare() const { return 0; }
  // Before the first update, for rules that look at each tensor.
  virtual void Prepare(const Layout&, Device&) {}
  virtual void Apply(Queue& queue, const Update& update) = 0;
};

struct RuleDef {
  const char* name;
  const char* help;
  double rate;            // with which it usually learns: that of a run which nobody gives one
  std::string_view keys;  // of [optimizer] that only some rules use, those of this one
  std::unique_ptr<Rule> (*make)(const OptimizerOptions&);  // null: it is whole
  // Minimises the loss of all samples at once, in a loop of its own (trainer/batch_train.h): no
  // batches, no rate.
  bool whole = false;
  // A tensor's step depends on all of its gradient: all are written, and none is cut in two.
  bool by_tensor = false;
};

// All of them: optimizer.name chooses one.
std::span<const RuleDef> AllRules();
const RuleDef& FindRule(std::string_view name);                   // UsageError for an unknown name
std::unique_ptr<Rule> MakeRule(const OptimizerOptions& options);  // of one that is not whole
// Slices as long as the weights that it takes beside them.
size_t SlicesOf(const OptimizerOptions& options);

// The usual rate of optimizer.name. That of sgd is for its usual momentum; with less of it the
// same steps need a larger one.
double UsualRate(const OptimizerOptions& options);

// Paths of keys that say how samples become steps and steps moves: no use where a rule is whole.
std::span<const char* const> KeysOfSteps();

// Keys of [optimizer] that other rules than this one use.
std::vector<std::string> KeysOfOthers(const RuleDef& rule);

}  // namespace trireme
