#include "transport/memory/striped.h"

#include <optional>

#include "transport/check/conformance.h"
#include "transport/check/what_of.h"
#include "transport/check/with_memory.h"
#include "transport/memory/box.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

constexpr double kTimeout_s = 60;  // of a machine with much to do
constexpr size_t kBoxes = 3;

std::unique_ptr<Memory> ConnectAll(std::vector<std::unique_ptr<MemoryBox>>& boxes) {
  std::vector<std::unique_ptr<Memory>> ways;
  for (auto& box : boxes) ways.push_back(box->Connect());
  return Stripe(std::move(ways));
}

std::vector<std::unique_ptr<MemoryBox>> NewBoxes() {
  std::vector<std::unique_ptr<MemoryBox>> boxes;
  for (size_t b = 0; b < kBoxes; ++b) {
    boxes.push_back(std::make_unique<MemoryBox>(
        MemoryBoxSetup{.bytes = size_t{16} << 20, .timeout_s = kTimeout_s}));
  }
  return boxes;
}

class Striped : public testing::TestWithParam<ConformanceCase> {};
TEST_P(Striped, Conforms) {
  CheckCase(GetParam(), [](int ranks, double timeout_s, FunctionRef<void(World&)> fn) {
    auto boxes = NewBoxes();
    RunRanks(ranks, timeout_s, [&](World& world) {
      const auto memory = ConnectAll(boxes);
      WithMemory own(world, *memory);
      fn(own);
    });
  });
}

// All but one: a get has each stripe as of one version, not all of them.
std::vector<ConformanceCase> StripedCases() {
  std::vector<ConformanceCase> cases;
  for (const ConformanceCase& each : MemoryCases()) {
    if (std::string_view(each.name) != "NobodySeesHalfOfAnAdd") cases.push_back(each);
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Cases, Striped, testing::ValuesIn(StripedCases()), CaseName);

// What the version of a get says is in all stripes, whoever adds meanwhile.
TEST(StripedMemory, AllStripesHaveWhatTheVersionSays) {
  constexpr int kAdds = 200;
  auto boxes = NewBoxes();
  const auto memory = ConnectAll(boxes);
  const Region region = memory->Create("w", RegionType::kF32, 30'001);
  std::jthread adder([&] {
    const auto own = ConnectAll(boxes);
    const Region same = own->Open("w", After(kTimeout_s));
    const std::vector<float> ones(same.length, 1);
    for (int i = 0; i < kAdds; ++i) own->Accumulate(same, 0, ones).Wait();
  });
  std::vector<float> got(region.length);
  for (uint64_t version = 0; version < kAdds;) {
    memory->Get(region, 0, got, &version).Wait();
    EXPECT_EQ(got.front(), float(version));
    EXPECT_GE(got[15'000], float(version));
    EXPECT_GE(got.back(), float(version));
  }
}

TEST(StripedMemory, EachBoxHasItsStripeAndNumbersAreInTheFirst) {
  auto boxes = NewBoxes();
  const auto memory = ConnectAll(boxes);
  memory->Create("w", RegionType::kF32, 100);
  memory->Create("n", RegionType::kI64, 100);
  memory->Create("short", RegionType::kF32, 2);
  const auto names = [&](size_t box) {
    std::string text;
    for (const auto& region : boxes[box]->store().Look().regions) {
      text += region.name + ":" + std::to_string(region.length) + " ";
    }
    return text;
  };
  EXPECT_EQ(names(0), "w#1/3:33 n:100 short:2 ");
  EXPECT_EQ(names(1), "w#2/3:33 ");
  EXPECT_EQ(names(2), "w#3/3:34 ");
  EXPECT_EQ(memory->way(), "mapped, mapped, mapped");
}

// Somebody who names the boxes in another order finds nothing, and hears why.
TEST(StripedMemory, AnotherOrderIsNamed) {
  auto boxes = NewBoxes();
  const auto memory = ConnectAll(boxes);
  memory->Create("w", RegionType::kF32, 100);
  std::swap(boxes[0], boxes[2]);
  const auto other = ConnectAll(boxes);
  EXPECT_TRUE(Has(WhatOf([&] { other->Open("w", After(0)); }), "in another order"));
}

// What a guard refuses at the first stripe is taken back from the others.
TEST(StripedMemory, ARefusedAddIsInNoStripe) {
  auto boxes = NewBoxes();
  const auto memory = ConnectAll(boxes);
  const Region region = memory->Create("w", RegionType::kF32, 100'000);
  const Region numbers = memory->Create("n", RegionType::kI64, 1);
  const std::vector<float> values(region.length, 3);
  memory->Put(region, 0, values).Wait();
  const MemoryGuard guard{numbers, 0, 1};
  EXPECT_THROW(memory->Accumulate(region, 0, values, {}, nullptr, &guard).Wait(), GuardChanged);
  std::vector<float> got(region.length);
  uint64_t version = 0;
  memory->Get(region, 0, got, &version).Wait();
  EXPECT_EQ(got, values);
  EXPECT_EQ(version, 1u);
}

}  // namespace
}  // namespace trireme
