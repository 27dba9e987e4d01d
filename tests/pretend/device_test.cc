#include "pretend/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "base/clock.h"
#include "flat/arithmetic.h"
#include "flat/cpu/host.h"
#include "flat/staging.h"
#include "flat/table_check.h"

namespace trireme {
namespace {

// What a device promises, whichever it is.
template <class D>
class DeviceTest : public testing::Test {
 protected:
  D device_;
};
using Devices = testing::Types<HostDevice, PretendDevice>;
TYPED_TEST_SUITE(DeviceTest, Devices);

TYPED_TEST(DeviceTest, TableComputesWhatItSays) {
  for (size_t n : {0, 1, 17, 1000}) CheckTable(this->device_, n, n % 2, n);
}

TYPED_TEST(DeviceTest, MemoryIsZeroAndAligned) {
  auto queue = this->device_.NewQueue();
  for (size_t n : {1, 16, 1023, 5000}) {
    Buffer buffer(this->device_, n);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.slice().data) % 64, 0u);
    std::vector<float> host(n, 1);
    flat::GetNow(*queue, buffer, host);
    EXPECT_EQ(host, std::vector<float>(n));
    flat::Fill(*queue, 3, buffer);
    queue->Sync();
  }
}

TYPED_TEST(DeviceTest, LendsHostMemoryThatIsZeroAndAligned) {
  for (size_t n : {1, 1000, 1000000}) {
    const HostBuffer<int32_t> host(this->device_, n);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(host.data()) % 64, 0u);
    EXPECT_EQ(std::ranges::count(host.values(), 0), std::ptrdiff_t(n));
  }
}

TYPED_TEST(DeviceTest, CountsTheMemoryThatItGave) {
  EXPECT_EQ(this->device_.allocated_bytes(), 0u);
  {
    const Buffer x(this->device_, 100), y(this->device_, 5);
    EXPECT_EQ(this->device_.allocated_bytes(), 105 * sizeof(float));
  }
  EXPECT_EQ(this->device_.allocated_bytes(), 0u);
}

TYPED_TEST(DeviceTest, CopiesAnyMemoryForThoseWhoWait) {
  auto queue = this->device_.NewQueue();
  const size_t n = (size_t{5} << 19) + 3;  // more than crosses at a time
  std::vector<float> there(n), back(n);
  for (size_t i = 0; i < n; ++i) there[i] = float(i);
  const Buffer x(this->device_, n);
  flat::PutNow(*queue, there, x);
  flat::GetNow(*queue, x, back);
  EXPECT_EQ(back, there);
}

TYPED_TEST(DeviceTest, StagingShowsTheHostASlice) {
  auto queue = this->device_.NewQueue();
  alignas(64) std::array<float, 32> others = {};
  for (const bool own : {true, false}) {
    const Staging staging =
        own ? Staging(this->device_, others.size()) : Staging(this->device_, others);
    EXPECT_EQ(staging.copies(), !this->device_.host_visible());
    const Buffer x(this->device_, 8);
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
TYPED_TEST(DeviceTest, MarksKnowWhenTheyFired) {
  auto queue = this->device_.NewQueue();
  const Buffer x(this->device_, 1000);
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
TYPED_TEST(DeviceTest, QueuesWaitForEachOthersEvents) {
  auto a = this->device_.NewQueue(), b = this->device_.NewQueue();
  Buffer x(this->device_, 100), y(this->device_, 100), one(this->device_, 100);
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

TYPED_TEST(DeviceTest, ADyingQueueFinishesItsWork) {
  Buffer x(this->device_, 10);
  auto other = this->device_.NewQueue();
  Event event;
  {
    auto queue = this->device_.NewQueue();
    for (int i = 0; i < 100; ++i) flat::Fill(*queue, float(i), x);
    event = queue->Record();
  }
  event.Wait();
  std::vector<float> host(10);
  flat::GetNow(*other, x, host);
  EXPECT_EQ(host, std::vector<float>(10, 99));
}

TEST(PretendDevice, EnqueueingDoesNotWait) {
  PretendDevice device;
  auto queue = device.NewQueue(), gate = device.NewQueue();
  auto& held = static_cast<PretendQueue&>(*gate);
  std::mutex mutex;
  std::unique_lock lock(mutex);
  held.Do([&mutex] { const std::lock_guard wait(mutex); });
  queue->Wait(gate->Record());
  Buffer x(device, 4);
  const HostBuffer<float> host(device, std::vector<float>(4, 7));
  const std::span<float> got = host;
  flat::Fill(*queue, 1, x);
  flat::Get(*queue, x, host);
  const Event done = queue->Record();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(std::vector<float>(got.begin(), got.end()),
            std::vector<float>(4, 7));  // nothing has run yet
  lock.unlock();
  done.Wait();
  EXPECT_EQ(std::vector<float>(got.begin(), got.end()), std::vector<float>(4, 1));
}

class PretendDeviceDeathTest : public testing::Test {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(PretendDeviceDeathTest, TheHostMayNotTouchItsMemory) {
  PretendDevice device;
  Buffer x(device, 4);
  EXPECT_DEATH(std::fprintf(stderr, "%f", double(*const_cast<volatile float*>(x.slice().data))),
               "");
  EXPECT_DEATH(*const_cast<volatile float*>(x.slice().data) = 1, "");
  EXPECT_DEATH(x.slice().host(), "host_visible");
}

TEST_F(PretendDeviceDeathTest, CopiesReachOnlyMemoryOfTheDevice) {
  PretendDevice device;
  auto queue = device.NewQueue();
  const Buffer x(device, 4);
  std::vector<float> plain(4);
  EXPECT_DEATH(flat::Put(*queue, plain, x), "neither allocated nor registered");
  EXPECT_DEATH(flat::Get(*queue, x, plain), "neither allocated nor registered");
  const HostBuffer<float> short_one(device, 3);
  EXPECT_DEATH(flat::Put(*queue, short_one.data(), x), "neither allocated nor registered");
  const HostRegistration registered(device, std::as_writable_bytes(std::span(plain)));
  flat::Put(*queue, plain, x);
  queue->Sync();
}

TEST_F(PretendDeviceDeathTest, AnEventThatWasNeverRecordedIsABug) {
  PretendDevice device;
  auto queue = device.NewQueue();
  EXPECT_DEATH(queue->Wait(Event()), "recorded");
  EXPECT_DEATH(Event().Wait(), "recorded");
}

void FreeTooEarly() {
  PretendDevice device;
  auto queue = device.NewQueue();
  Buffer x(device, 4);
  std::mutex mutex;
  std::unique_lock lock(mutex);
  static_cast<PretendQueue&>(*queue).Do([&mutex] { const std::lock_guard wait(mutex); });
  flat::Fill(*queue, 1, x);
  x = Buffer();
  lock.unlock();
  queue->Sync();
}

TEST_F(PretendDeviceDeathTest, FreedMemoryIsGoneForLateWork) { EXPECT_DEATH(FreeTooEarly(), ""); }

TEST_F(PretendDeviceDeathTest, SlicesOfTwoDevicesNeverMeet) {
  PretendDevice device;
  HostDevice host;
  auto queue = device.NewQueue();
  Buffer x(device, 4), y(host, 4);
  EXPECT_DEATH(flat::Add(*queue, x, y), "device");
}

}  // namespace
}  // namespace trireme
