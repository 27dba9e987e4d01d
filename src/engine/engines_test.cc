#include "engine/engines.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/cpu/bf16/unit.h"
#include "graph/models/models.h"
#include "graph/program.h"

namespace trireme {
namespace {

TEST(Engines, EachRowMakesWhatItNames) {
  for (const EngineKind& kind : EngineKinds()) {
    EXPECT_EQ(&FindEngine(kind.name), &kind);
    const Backend backend = kind.make(Precision::kF32, {}, {});
    EXPECT_EQ(backend.engine->name(), kind.name);
    ASSERT_FALSE(kind.targets().empty());
    EXPECT_EQ(backend.engine->target(), kind.targets()[0]);
    EXPECT_EQ(kind.why_not(Precision::kF32), "");
  }
  EXPECT_THROW(FindEngine("gpu"), UsageError);
}

TEST(Engines, AFallBackOnlyWhenAsked) {
  for (const EngineKind& kind : EngineKinds()) {
    EXPECT_EQ(ResolvePrecision(kind, "f32"), Precision::kF32);
    if (kind.why_not(Precision::kBf16).empty()) {
      EXPECT_EQ(ResolvePrecision(kind, "bf16"), Precision::kBf16);
      EXPECT_EQ(ResolvePrecision(kind, "bf16-or-f32"), Precision::kBf16);
    } else {
      EXPECT_THROW(ResolvePrecision(kind, "bf16"), UsageError);
      EXPECT_EQ(ResolvePrecision(kind, "bf16-or-f32"), Precision::kF32);
    }
  }
}

TEST(Engines, TheTargetSaysWhatBFloatsAreMultipliedWith) {
  const cpu::MatrixUnit* unit = cpu::FindMatrixUnit();
  const EngineKind& kind = FindEngine("cpu");
  ASSERT_EQ(unit == nullptr, !kind.why_not(Precision::kBf16).empty());
  if (!unit) return;
  EXPECT_EQ(kind.make(Precision::kBf16, {}, {}).engine->target(),
            kind.targets()[0] + "+" + std::string(unit->name));
}

TEST(Engines, OptionsReachTheEngine) {
  const Graph graph = BuildModel({.name = "resnet18"}, {32, 32, 3}, 10);
  for (const std::string how : {"off", "f2", "auto"}) {
    const Backend backend = FindEngine("cpu").make(Precision::kF32, {.winograd = how}, {});
    Graph chosen = graph;
    EXPECT_NE(backend.engine->Choose(chosen).find("winograd (" + how + ")"), std::string::npos);
  }
}

TEST(Engines, CeilingsAreMeasured) {
  int measured = 0;
  for (const EngineKind& kind : EngineKinds()) {
    if (!kind.ceiling) continue;
    const Ceiling ceiling = kind.ceiling(1);
    EXPECT_GT(ceiling.flops(Precision::kF32)(1e-3), 0);
    EXPECT_GT(ceiling.copy(1e-3), 0);
    ++measured;
  }
  EXPECT_GE(measured, 1);
}

}  // namespace
}  // namespace trireme
