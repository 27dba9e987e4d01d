#include "strategy/inner/device_sum.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "base/error.h"
#include "flat/arithmetic.h"
#include "strategy/step/tags.h"
#include "transport/collective/broadcast.h"

namespace trireme {
namespace {

// What the members tell each other, cut to a length.
struct DeviceWords {
  std::array<char, 64> identity = {};
  std::array<char, 400> problem = {};
};

template <size_t N>
void CutInto(std::string_view words, std::array<char, N>& into) {
  std::copy_n(words.begin(), std::min(words.size(), N - 1), into.begin());
}

}  // namespace

std::string WhyNoDeviceSum(DeviceGroups& devices, Group& group) {
  DeviceWords own;
  CutInto(devices.identity(), own.identity);
  CutInto(devices.problem(), own.problem);
  const auto all = AllGather(group, kTagSum, own);
  std::map<std::string, int> first;
  for (int r = 0; r < group.size(); ++r) {
    const DeviceWords& words = all[size_t(r)];
    if (words.problem[0]) return fmt::format("rank {}: {}", r, words.problem.data());
    const auto [before, is_new] = first.emplace(words.identity.data(), r);
    if (is_new) continue;
    return fmt::format("there are more ranks than devices: {} and {} share one", before->second, r);
  }
  return "";
}

InnerDeviceSum::InnerDeviceSum(DeviceGroups& devices, Group& group)
    : group_(group),
      exceptions_(std::uncaught_exceptions()),
      pulse_(
          group,
          [this] {
            const auto made = joined();
            const std::string failure = made ? made->Failure() : "";
            if (!failure.empty()) throw Error("{}", failure);
          },
          [this] {
            if (const auto made = joined()) made->Abort();
          }) {
  Join(devices);
}

// Where this ends without an exception, no sum is left on any rank when all have come here.
InnerDeviceSum::~InnerDeviceSum() {
  if (std::uncaught_exceptions() > exceptions_) {
    GiveUp("left in the middle of a run");
  } else {
    DrainQuietly(queue_.get());
  }
  pulse_.Leave();
  DrainQuietly(queue_.get());
  devices_.reset();  // before the queue
}

void InnerDeviceSum::Join(DeviceGroups& devices) {
  DeviceGroups::Id id{};
  if (group_.rank() == 0) id = devices.NewId();
  Broadcast(group_, kTagSum, 0, id);
  const auto look = [this] { pulse_.Check(); };
  std::shared_ptr<DeviceGroup> made = devices.Join(id, group_.rank(), group_.size(), look);
  {
    const std::lock_guard lock(mutex_);
    devices_ = std::move(made);
  }
  pulse_.Check();  // what is lost from here on it aborts
}

std::shared_ptr<DeviceGroup> InnerDeviceSum::joined() {
  const std::lock_guard lock(mutex_);
  return devices_;
}

void InnerDeviceSum::Begin(Replica& r) { queue_ = r.device.NewQueue(); }

void InnerDeviceSum::BeforeStep(Replica& r) {
  pulse_.Check();
  bucket_ = 0;
  if (r.work.shards.empty()) flat::Fill(r.queue, 0, r.summands[0]);  // more workers than shards
}

void InnerDeviceSum::BucketReady(Replica& r, const Bucket& bucket, const Event& event) {
  const auto [begin, size] = bucket.range;
  SpanSink* const spans = r.observer.tracing();
  queue_->Wait(event);
  const Event began = queue_->Mark();
  devices_->Sum(*queue_, r.summands[0].Sub(begin, size));
  busy_.Add(began, queue_->Mark(), 1,
            {spans, Track::kCommunication, SpanKind::kBucket, r.work.step, bucket_++});
  summed_bytes_ += size * sizeof(float);
}

void InnerDeviceSum::Reduce(Replica& r) {
  const Event began = r.queue.Mark();  // backward is over
  r.queue.Wait(queue_->Record());
  waited_.Add(began, r.queue.Mark());
}

void InnerDeviceSum::GiveUp(std::string_view why) noexcept {
  group_.Abort(why);
  if (devices_) devices_->Abort();
}

// What a ring sends of all sums, beside the messages.
Volume InnerDeviceSum::volume() const {
  Volume volume = group_.volume();
  const uint64_t ranks = uint64_t(group_.size()), ring = 2 * (ranks - 1) * summed_bytes_ / ranks;
  volume.sent += ring;
  volume.received += ring;
  return volume;
}

}  // namespace trireme
