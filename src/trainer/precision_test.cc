#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/cpu/bf16/unit.h"
#include "trainer/job.h"

namespace trireme {
namespace {

TrainerOptions With(const char* precision, const char* device = "cpu") {
  TrainerOptions options;
  options.precision = precision;
  options.device = device;
  return options;
}

TEST(Precision, FallsBackOnlyWhenAsked) {
  EXPECT_EQ(ResolvePrecision(With("f32")), "f32");
  EXPECT_EQ(ResolvePrecision(With("bf16-or-f32", "ref")), "f32");
  EXPECT_THROW(ResolvePrecision(With("bf16", "ref")), UsageError);
  if (cpu::FindMatrixUnit()) {
    EXPECT_EQ(ResolvePrecision(With("bf16")), "bf16");
    EXPECT_EQ(ResolvePrecision(With("bf16-or-f32")), "bf16");
  } else {
    EXPECT_THROW(ResolvePrecision(With("bf16")), UsageError);
    EXPECT_EQ(ResolvePrecision(With("bf16-or-f32")), "f32");
  }
}

TEST(Precision, TheEngineSaysWhatItComputesWith) {
  if (!cpu::FindMatrixUnit()) GTEST_SKIP() << cpu::WhyNoMatrixUnit();
  const Rig rig = RigFor(With("bf16"))(1), plain = RigFor(With("f32"))(1);
  const std::string unit(cpu::FindMatrixUnit()->name);
  EXPECT_EQ(rig.engine->target(), std::string(plain.engine->target()) + "+" + unit);
}

}  // namespace
}  // namespace trireme
