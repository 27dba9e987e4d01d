#pragma once

namespace trireme {

// What the workers of one process have in common, where a strategy needs it: made before they start
// and gone after them.
class StrategyCommon {
 public:
  virtual ~StrategyCommon() = default;
};

}  // namespace trireme
