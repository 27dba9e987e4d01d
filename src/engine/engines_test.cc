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
    EXPECT_EQ(kind.why_not(Precision::kF32), "");
    if (!kind.Missing().empty()) {
      EXPECT_TRUE(kind.targets().empty());
      EXPECT_THROW(RequireDevice({&kind}), Error);
      EXPECT_THROW(kind.make(Precision::kF32, {}, {}), Error);
      continue;
    }
    const Backend backend = kind.make(Precision::kF32, {}, {});
    EXPECT_EQ(backend.engine->name(), kind.name);
    EXPECT_EQ(backend.engine->device().host_visible(), kind.host_memory);
    ASSERT_FALSE(kind.targets().empty());
    EXPECT_EQ(backend.engine->target(), kind.targets()[0]);
  }
  EXPECT_THROW(FindEngine("gpu"), UsageError);
  EXPECT_TRUE(HostEngine().host_memory);
  EXPECT_EQ(HostEngine().Missing(), "");
}

TEST(Engines, ADeviceHasANumberWhereTheRowSaysSo) {
  for (const EngineKind& kind : EngineKinds()) {
    const std::string name(kind.name);
    EXPECT_EQ(FindDevice(name).kind, &kind);
    EXPECT_FALSE(FindDevice(name).number);
    EXPECT_EQ(FindDevice(name).Text(), name);
    EXPECT_EQ(IsDevice(name + ":1"), kind.numbered);
    for (const char* wrong : {":", ":-1", ":x", ":1:2", ":1 ", ":99999999999"}) {
      EXPECT_FALSE(IsDevice(name + wrong)) << wrong;
    }
    if (kind.numbered) {
      EXPECT_EQ(FindDevice(name + ":12").number, 12);
      EXPECT_EQ(FindDevice(name + ":12").Text(), name + ":12");
      continue;
    }
    try {
      FindDevice(name + ":0");
      ADD_FAILURE() << name << ":0 was taken";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("say " + name), std::string::npos) << error.what();
    }
  }
}

// Cards of which this machine has one, or none.
constexpr EngineKind kOneCard = {
    .name = "card", .host_memory = false, .numbered = true, .missing = [](std::optional<int> k) {
      return std::string(k.value_or(0) > 0 ? "there is only card:0" : "");
    }};
constexpr EngineKind kNoCard = {.name = "card",
                                .host_memory = false,
                                .numbered = true,
                                .missing = [](std::optional<int>) -> std::string {
                                  return "there is no card; use --device cpu";
                                }};

TEST(Engines, ATrainedModelTakesTheDeviceThatIsHere) {
  std::string why;
  EXPECT_EQ(DeviceHere({&kOneCard, 0}, why).Text(), "card:0");
  EXPECT_EQ(why, "");
  EXPECT_EQ(DeviceHere({&kOneCard, 3}, why).Text(), "card");
  EXPECT_EQ(why, "there is only card:0");
  EXPECT_EQ(DeviceHere({&kNoCard, 3}, why).kind, &HostEngine());
  EXPECT_EQ(why, "there is no card; use --device cpu");
  EXPECT_EQ(DeviceHere({&kNoCard}, why).kind, &HostEngine());
  EXPECT_NO_THROW(RequireDevice({&kOneCard}));
  try {
    RequireDevice({&kNoCard, 3});
    ADD_FAILURE() << "a card that is not there was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(),
              std::string("trainer.device = \"card:3\": there is no card; use --device cpu"));
  }
}

TEST(Engines, ATrainedModelIsFloat32WhereThePrecisionIsNotHere) {
  for (const EngineKind& kind : EngineKinds()) {
    const bool bf16 = kind.why_not(Precision::kBf16).empty();
    EXPECT_EQ(PrecisionHere(kind, "bf16"), bf16 ? Precision::kBf16 : Precision::kF32);
    EXPECT_EQ(PrecisionHere(kind, "f32"), Precision::kF32);
  }
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

TEST(Engines, AutoTakesACardOrSaysWhyNot) {
  std::string why;
  const DeviceChoice choice = AutoDevice(why);
  EXPECT_EQ(choice.kind->host_memory, !why.empty());
  EXPECT_EQ(choice.kind->Missing(), "");
  EXPECT_EQ(FindDevice(kAutoDevice).kind, choice.kind);
  EXPECT_EQ(AutoDevice(why, /*asked=*/false).kind, choice.kind);
  EXPECT_TRUE(why.empty() || !FindEngine("cuda").absent()) << why;
  EXPECT_TRUE(IsDevice(kAutoDevice));
}

TEST(Engines, ProcessorsHaveNoTf32) {
  for (const char* name : {"cpu", "ref"}) {
    EXPECT_THROW(ResolvePrecision(FindEngine(name), "tf32"), UsageError);
  }
}

TEST(Engines, OnlySomeComputeInFp16) {
  EXPECT_EQ(ResolvePrecision(FindEngine("ref"), "fp16"), Precision::kFp16);
  EXPECT_EQ(ResolvePrecision(FindEngine("cuda"), "fp16"), Precision::kFp16);
  EXPECT_EQ(PrecisionHere(FindEngine("cpu"), "fp16"), Precision::kF32);
  try {
    ResolvePrecision(FindEngine("cpu"), "fp16");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(),
              std::string("trainer.precision = \"fp16\": device cpu does not compute in fp16; use "
                          "bf16-or-f32"));
  }
}

// Ranks with the same weights must round alike.
TEST(Engines, TheTargetOfTheReferenceSaysWhatItRounds) {
  const EngineKind& ref = FindEngine("ref");
  EXPECT_NE(ref.make(Precision::kFp16, {}, {}).engine->target(),
            ref.make(Precision::kF32, {}, {}).engine->target());
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
    if (!kind.ceiling || !kind.Missing().empty()) continue;
    const Ceiling ceiling = kind.ceiling(1, {});
    EXPECT_GT(ceiling.flops(Precision::kF32)(1e-3), 0);
    EXPECT_GT(ceiling.copy(1e-3), 0);
    ++measured;
  }
  EXPECT_GE(measured, 1);
}

}  // namespace
}  // namespace trireme
