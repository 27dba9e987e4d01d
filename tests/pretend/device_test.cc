#include "pretend/device.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "flat/arithmetic.h"
#include "flat/cpu/host.h"
#include "flat/device_check.h"
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

TYPED_TEST(DeviceTest, KeepsItsPromises) { CheckDevice(this->device_); }

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
