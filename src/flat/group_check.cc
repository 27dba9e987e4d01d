#include "flat/group_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "flat/arithmetic.h"
#include "flat/staging.h"

namespace trireme {
namespace {

using Members = std::span<const GroupMember>;

// What a member does, with its number, its group and a queue.
using Work = std::function<void(int rank, Device& device, DeviceGroup& group, Queue& queue)>;

// Each member on a thread of its own; all groups live until the last is done.
void OnEach(Members members, const Work& work) {
  const DeviceGroups::Id id = members[0].groups.NewId();
  const int size = int(members.size());
  std::latch done(size);
  std::vector<std::jthread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      Device& device = members[size_t(r)].device;
      const auto queue = device.NewQueue();
      const auto group = members[size_t(r)].groups.Join(id, r, size, [] {});
      work(r, device, *group, *queue);
      queue->Sync();
      done.arrive_and_wait();
    });
  }
}

std::vector<float> ValuesOf(int rank, size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = float((i * 7 + size_t(rank) * 3) % 64);
  return values;
}

// Whole numbers: exact in any order.
std::vector<float> SumOf(int ranks, size_t n) {
  std::vector<float> sum(n);
  for (int r = 0; r < ranks; ++r) {
    const std::vector<float> values = ValuesOf(r, n);
    for (size_t i = 0; i < n; ++i) sum[i] += values[i];
  }
  return sum;
}

std::vector<float> OnHost(Queue& queue, Slice slice) {
  std::vector<float> host(slice.size);
  flat::GetNow(queue, slice, host);
  return host;
}

void DevicesAreTold(Members members) {
  for (size_t i = 0; i < members.size(); ++i) {
    EXPECT_EQ(members[i].groups.problem(), "");
    EXPECT_NE(members[i].groups.name(), "");
    EXPECT_NE(members[i].groups.identity(), "");
    for (size_t j = 0; j < i; ++j) {
      EXPECT_NE(members[i].groups.identity(), members[j].groups.identity());
    }
  }
}

// Odd lengths, at odd places; what lies around stays.
void SumsAnyStretch(Members members) {
  OnEach(members, [&](int rank, Device& device, DeviceGroup& group, Queue& queue) {
    for (const size_t n : {1, 2, 17, 1000, 20'011}) {
      for (const size_t at : {0, 1, 3, 16}) {
        const Buffer x(device, n + at + 5);
        flat::Fill(queue, -1, x);
        const Slice part = x.slice().Sub(at, n);
        flat::PutNow(queue, ValuesOf(rank, n), part);
        group.Sum(queue, part);
        EXPECT_EQ(OnHost(queue, part), SumOf(int(members.size()), n)) << n << " at " << at;
        EXPECT_EQ(OnHost(queue, x.slice().Sub(0, at)), std::vector<float>(at, -1));
        EXPECT_EQ(OnHost(queue, x.slice().Sub(n + at, 5)), std::vector<float>(5, -1));
      }
    }
    EXPECT_EQ(group.Failure(), "");
  });
}

// Many are enqueued before the first is done, between other work of the queue.
void SumsInTheOrderOfTheQueue(Members members) {
  constexpr int kSums = 12;
  OnEach(members, [&](int rank, Device& device, DeviceGroup& group, Queue& queue) {
    const Buffer x(device, 33), y(device, 1000), one(device, 33);
    flat::Fill(queue, float(rank), x);
    flat::Fill(queue, 1, one);
    flat::Fill(queue, 1, y);
    const float ranks = float(members.size());
    float expected = ranks * (ranks - 1) / 2;
    group.Sum(queue, x);
    for (int i = 0; i < kSums; ++i) {
      group.Sum(queue, y.slice().Sub(size_t(i), 500));
      flat::Add(queue, one, x);
      flat::Scale(queue, 1 / ranks, x);
      group.Sum(queue, x);
      expected = expected + 1;
    }
    for (const float value : OnHost(queue, x)) EXPECT_NEAR(value, expected, 1e-4);
  });
}

// As a step does it: buckets of one queue's work, summed on another, awaited by the first.
void SumsOnAQueueOfTheirOwn(Members members) {
  OnEach(members, [&](int rank, Device& device, DeviceGroup& group, Queue& queue) {
    const auto computes = device.NewQueue();
    const Buffer x(device, 300);
    const HostBuffer<float> got(device, 300);
    for (int step = 0; step < 5; ++step) {
      for (size_t bucket = 0; bucket < 3; ++bucket) {
        const Slice part = x.slice().Sub(bucket * 100, 100);
        flat::Fill(*computes, float(rank + step), part);
        queue.Wait(computes->Record());
        group.Sum(queue, part);
      }
      computes->Wait(queue.Record());
      flat::Scale(*computes, 2, x);
    }
    flat::Get(*computes, x, got);
    computes->Sync();
    const float ranks = float(members.size());
    const float sum = ranks * (ranks - 1) / 2 + ranks * 4;
    for (const float value : got.values()) EXPECT_EQ(value, 2 * sum);
  });
}

// With one member nobody waits: then that a group can be left at any time.
void AbortEndsWhatWaits(Members members) {
  std::latch looked(std::ptrdiff_t(members.size()));
  OnEach(members, [&](int rank, Device& device, DeviceGroup& group, Queue& queue) {
    const Buffer x(device, 100);
    const bool waits = rank == 0 && members.size() > 1;
    if (waits) {  // for somebody who will not come
      group.Sum(queue, x);
      EXPECT_FALSE(queue.Record().HasFired());
    }
    std::jthread other([&] { group.Abort(); });
    queue.Sync();
    other.join();
    group.Abort();
    EXPECT_THROW(group.Sum(queue, x), Error);
    flat::Fill(queue, 3, x);  // the queue goes on
    EXPECT_EQ(OnHost(queue, x), std::vector<float>(100, 3));
    looked.arrive_and_wait();
  });
}

// One who aborts does no harm to sums that are done; the others come out when they abort, too.
void AbortByAnotherMember(Members members) {
  if (members.size() < 2) return;
  std::latch summed(std::ptrdiff_t(members.size())), aborted(1);
  OnEach(members, [&](int rank, Device& device, DeviceGroup& group, Queue& queue) {
    const Buffer x(device, 100), y(device, 100);
    flat::Fill(queue, 1, x);
    group.Sum(queue, x);
    queue.Sync();
    summed.arrive_and_wait();
    if (rank == 1) {
      group.Abort();
      aborted.count_down();
    } else {
      group.Sum(queue, y);
      aborted.wait();
      group.Abort();
    }
    EXPECT_EQ(OnHost(queue, x), std::vector<float>(100, float(members.size())));
  });
}

// Join looks after those who call it.
void JoinGivesUp(Members members) {
  if (members.size() < 2) return;
  const DeviceGroups::Id id = members[0].groups.NewId();
  const auto give_up = [] { throw Error("nobody comes"); };
  EXPECT_THROW(members[0].groups.Join(id, 0, int(members.size()), give_up), Error);
}

}  // namespace

void CheckDeviceGroup(Members members) {
  const std::pair<const char*, void (*)(Members)> promises[] = {
      {"DevicesAreTold", DevicesAreTold},
      {"SumsAnyStretch", SumsAnyStretch},
      {"SumsInTheOrderOfTheQueue", SumsInTheOrderOfTheQueue},
      {"SumsOnAQueueOfTheirOwn", SumsOnAQueueOfTheirOwn},
      {"AbortEndsWhatWaits", AbortEndsWhatWaits},
      {"AbortByAnotherMember", AbortByAnotherMember},
      {"JoinGivesUp", JoinGivesUp}};
  for (const auto& [name, check] : promises) {
    SCOPED_TRACE(name);
    check(members);
  }
}

}  // namespace trireme
