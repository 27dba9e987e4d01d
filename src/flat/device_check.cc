#include "flat/device_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "flat/arithmetic.h"
#include "flat/staging.h"

namespace trireme {
namespace {

void MemoryIsZeroAndAligned(Device& device) {
  auto queue = device.NewQueue();
  for (size_t n : {1, 16, 1023, 5000}) {
    Buffer buffer(device, n);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.slice().data) % 64, 0u);
    std::vector<float> host(n, 1);
    flat::GetNow(*queue, buffer, host);
    EXPECT_EQ(host, std::vector<float>(n));
    flat::Fill(*queue, 3, buffer);
    queue->Sync();
  }
}

void LendsHostMemoryThatIsZeroAndAligned(Device& device) {
  for (size_t n : {1, 1000, 1000000}) {
    const HostBuffer<int32_t> host(device, n);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(host.data()) % 64, 0u);
    EXPECT_EQ(std::ranges::count(host.values(), 0), std::ptrdiff_t(n));
  }
}

void CountsTheMemoryThatItGave(Device& device) {
  const size_t before = device.allocated_bytes();
  {
    const Buffer x(device, 100), y(device, 5);
    EXPECT_EQ(device.allocated_bytes(), before + 105 * sizeof(float));
  }
  EXPECT_EQ(device.allocated_bytes(), before);
}

void CopiesAnyMemoryForThoseWhoWait(Device& device) {
  auto queue = device.NewQueue();
  const size_t n = (size_t{5} << 19) + 3;  // more than crosses at a time
  std::vector<float> there(n), back(n);
  for (size_t i = 0; i < n; ++i) there[i] = float(i);
  const Buffer x(device, n);
  flat::PutNow(*queue, there, x);
  flat::GetNow(*queue, x, back);
  EXPECT_EQ(back, there);
}

void StagingShowsTheHostASlice(Device& device) {
  auto queue = device.NewQueue();
  alignas(64) std::array<float, 32> others = {};
  for (const bool own : {true, false}) {
    const Staging staging = own ? Staging(device, others.size()) : Staging(device, others);
    EXPECT_EQ(staging.copies(), !device.host_visible());
    const Buffer x(device, 8);
    flat::Fill(*queue, 2, x);
    const std::span<float> host = staging.Get(*queue, x, 16);
    queue->Sync();
    EXPECT_EQ(host.front(), 2);
    host.front() = 3;
    staging.Put(*queue, x, 16);
    std::vector<float> back(8);
    flat::GetNow(*queue, x, back);
    EXPECT_EQ(back, (std::vector<float>{3, 2, 2, 2, 2, 2, 2, 2}));
  }
}

// A mark knows when the work before it was done, on the clock of the host.
void MarksKnowWhenTheyFired(Device& device) {
  auto queue = device.NewQueue();
  const Buffer x(device, 1000);
  const double before = Now();
  const Event first = queue->Mark();
  flat::Fill(*queue, 1, x);
  const Event second = queue->Mark();
  second.Wait();
  EXPECT_TRUE(first.HasFired() && second.HasFired());
  EXPECT_LE(before, first.FiredAt());
  EXPECT_LE(first.FiredAt(), second.FiredAt());
  EXPECT_LE(second.FiredAt(), Now());
}

// Two queues hand a slice to and fro; without the waits the sums would differ.
void QueuesWaitForEachOthersEvents(Device& device) {
  auto a = device.NewQueue(), b = device.NewQueue();
  Buffer x(device, 100), y(device, 100), one(device, 100);
  flat::Fill(*a, 1, one);
  for (int i = 0; i < 50; ++i) {
    flat::Add(*a, one, x);  // x += 1
    b->Wait(a->Record());
    flat::Add(*b, x, y);  // y += x
    a->Wait(b->Record());
  }
  std::vector<float> host(100);
  flat::GetNow(*b, y, host);
  EXPECT_EQ(host, std::vector<float>(100, 50 * 51 / 2));
}

void ADyingQueueFinishesItsWork(Device& device) {
  Buffer x(device, 10);
  auto other = device.NewQueue();
  Event event;
  {
    auto queue = device.NewQueue();
    for (int i = 0; i < 100; ++i) flat::Fill(*queue, float(i), x);
    event = queue->Record();
  }
  event.Wait();
  std::vector<float> host(10);
  flat::GetNow(*other, x, host);
  EXPECT_EQ(host, std::vector<float>(10, 99));
}

}  // namespace

void CheckDevice(Device& device) {
  const std::pair<const char*, void (*)(Device&)> promises[] = {
      {"MemoryIsZeroAndAligned", MemoryIsZeroAndAligned},
      {"LendsHostMemoryThatIsZeroAndAligned", LendsHostMemoryThatIsZeroAndAligned},
      {"CountsTheMemoryThatItGave", CountsTheMemoryThatItGave},
      {"CopiesAnyMemoryForThoseWhoWait", CopiesAnyMemoryForThoseWhoWait},
      {"StagingShowsTheHostASlice", StagingShowsTheHostASlice},
      {"MarksKnowWhenTheyFired", MarksKnowWhenTheyFired},
      {"QueuesWaitForEachOthersEvents", QueuesWaitForEachOthersEvents},
      {"ADyingQueueFinishesItsWork", ADyingQueueFinishesItsWork}};
  for (const auto& [name, check] : promises) {
    SCOPED_TRACE(name);
    check(device);
  }
}

}  // namespace trireme
