#pragma once
#include "strategy/choice.h"
#include "strategy/presets.h"

namespace trireme {

// Throws UsageError for the first reason why `choice`, made of `preset`, cannot be run in `scene`.
void RefuseImpossible(const StrategyChoice& choice, const StrategyPreset& preset,
                      const StrategyScene& scene);

}  // namespace trireme
