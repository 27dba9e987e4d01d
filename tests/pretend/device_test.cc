#include "pretend/device.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "flat/arithmetic.h"
#include "flat/cpu/host.h"
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
    flat::Get(*queue, buffer, host);
    queue->Sync();
    EXPECT_EQ(host, std::vector<float>(n));
    flat::Fill(*queue, 3, buffer);
    queue->Sync();
  }
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
  flat::Get(*b, y, host);
  b->Sync();
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
  flat::Get(*other, x, host);
  other->Sync();
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
  std::vector<float> host(4, 7);
  flat::Fill(*queue, 1, x);
  flat::Get(*queue, x, host);
  const Event done = queue->Record();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(host, std::vector<float>(4, 7));  // nothing has run yet
  lock.unlock();
  done.Wait();
  EXPECT_EQ(host, std::vector<float>(4, 1));
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
