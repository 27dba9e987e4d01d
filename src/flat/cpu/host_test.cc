#include "flat/cpu/host.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/team.h"
#include "flat/arithmetic.h"

namespace trireme {
namespace {

TEST(HostDevice, GivesZeroedAlignedMemory) {
  HostDevice device;
  for (size_t n : {1, 15, 1000}) {
    Buffer buffer(device, n);
    const std::span<float> x = buffer.slice().host();
    EXPECT_EQ(x.size(), n);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(x.data()) % 64, 0u);
    EXPECT_EQ(std::count(x.begin(), x.end(), 0.0f), ptrdiff_t(n));
    std::fill(x.begin(), x.end(), 1.0f);  // the next one must not see it
  }
  EXPECT_EQ(Buffer(device, 0).slice().host().size(), 0u);
}

TEST(HostDevice, SaysWhenThereIsNoMemory) {
  HostDevice device;
  EXPECT_THROW(device.Allocate(SIZE_MAX), Error);
  EXPECT_THROW(device.Allocate(SIZE_MAX / sizeof(float) - 64), Error);
}

TEST(HostDevice, MovesBuffers) {
  HostDevice device;
  Buffer a(device, 3), b(device, 5);
  float* const data = a.slice().data;
  b = std::move(a);
  Buffer c(std::move(b));
  EXPECT_EQ(c.slice().data, data);
  EXPECT_EQ(b.slice().data, nullptr);
}

TEST(HostDeviceDeathTest, AnEventThatWasNeverRecordedIsABug) {
  HostDevice device;
  auto queue = device.NewQueue();
  queue->Wait(queue->Record());
  EXPECT_DEATH(queue->Wait(Event()), "recorded");
  EXPECT_DEATH(Event().Wait(), "recorded");
}

// A test of races too: run it under tsan.
TEST(HostDevice, QueuesOfSeveralThreadsShareTheTeam) {
  constexpr size_t kSize = 300'001;
  Team team(3);
  HostDevice device(&team);
  std::vector<std::vector<float>> results(4, std::vector<float>(kSize));
  {
    std::vector<std::jthread> threads;
    for (std::vector<float>& result : results) {
      threads.emplace_back([&] {
        auto queue = device.NewQueue();
        Buffer a(device, kSize), b(device, kSize);
        flat::Fill(*queue, 0.5f, a);
        for (int i = 0; i < 20; ++i) flat::Add(*queue, a, b);
        flat::Get(*queue, b, result);
      });
    }
  }
  for (const auto& result : results) EXPECT_EQ(result, std::vector<float>(kSize, 10));
}

// What a team computes has the bits of one thread, for sums too.
TEST(HostDevice, ATeamKeepsTheBits) {
  constexpr size_t kSize = 1'000'003;
  const Random random(1);
  std::vector<float> x(kSize), y(kSize);
  for (size_t i = 0; i < kSize; ++i) x[i] = float(random.Normal(i));
  for (size_t i = 0; i < kSize; ++i) y[i] = float(random.Normal(kSize + i));

  const auto compute = [&](Team* team) {
    HostDevice device(team);
    auto queue = device.NewQueue();
    Buffer a(device, kSize), b(device, kSize), c(device, kSize), d(device, kSize),
        square(device, kSize), scale(device, UpdateScale::kSize), decays(device, kSize / 16 + 1);
    flat::Put(*queue, x, a);
    flat::Put(*queue, y, b);
    flat::Copy(*queue, b, c);
    flat::Put(*queue, x.data(), decays);
    flat::CheckAndClip(*queue, a, b, 2.5f, {}, scale);
    flat::Update(*queue, SgdRates{0.1f, 0.9f, true}, scale, decays, a, {b}, c);
    const std::vector<Slice> parts = {a, b, c};
    flat::SumInOrder(*queue, a, parts, d);
    flat::ElasticPull(*queue, 0.3f, a, d, c);
    flat::Update(*queue, AdamRates{0.1f, 0.9f, 0.1f, 0.9f, 0.1f, 1, 1, true, 0.5f}, scale, decays,
                 c, {b, square}, d);
    std::vector<float> all(UpdateScale::kSize + kSize);
    flat::Get(*queue, scale, all.data());
    flat::Get(*queue, d, all.data() + UpdateScale::kSize);
    return all;
  };
  const std::vector<float> alone = compute(nullptr);
  EXPECT_GT(alone[0], 0);
  EXPECT_LT(alone[0], 1);
  for (int threads : {1, 2, 3, 5}) {
    Team team(threads);
    EXPECT_EQ(compute(&team), alone) << threads << " threads";
  }
}

}  // namespace
}  // namespace trireme
