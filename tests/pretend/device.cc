#include "pretend/device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "flat/cpu/host_ops.h"

namespace trireme {
namespace {

using namespace std::chrono_literals;

// Bytes of address space: of several devices, where a sanitizer leaves little (arm64).
constexpr size_t kRegion = size_t{512} << 20;
constexpr auto kDeadline = 300s;  // to find what hangs, even on a busy machine
constexpr auto kFiringDelay = 30us;

std::byte* Reserve() {
  void* at = mmap(nullptr, kRegion, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw Error("pretend: no address space for {} bytes", kRegion);
  return static_cast<std::byte*>(at);
}

size_t RoundUp(size_t x, size_t to) { return (x + to - 1) / to * to; }
size_t Page() { return size_t(sysconf(_SC_PAGESIZE)); }

// A table entry as a command: arguments are copied now, slices are entered when it runs.
template <class T>
T Entered(const PretendDevice&, const T& value) {
  return value;
}
Slice Entered(const PretendDevice& device, const Slice& slice) { return device.Inside(slice); }
template <size_t N>
std::array<Slice, N> Entered(const PretendDevice& device, std::array<Slice, N> kept) {
  for (Slice& slice : kept) slice = device.Inside(slice);
  return kept;
}
SliceList Entered(const PretendDevice& device, SliceList list) {
  for (size_t i = 0; i < list.size; ++i) list.items[i] = device.Inside(list.items[i]);
  return list;
}
// Until the command has run.
struct EnteredGradient {
  Slice values;
  std::vector<OuterProduct> outers;
  bool known_finite;
  operator Gradient() const {
    Gradient gradient(values, outers);
    gradient.known_finite = known_finite;
    return gradient;
  }
};
EnteredGradient Entered(const PretendDevice& device, const Gradient& gradient) {
  EnteredGradient entered{device.Inside(gradient.values),
                          {gradient.unwritten.begin(), gradient.unwritten.end()},
                          gradient.known_finite};
  const auto inside = [&](const float* at) {
    return device.Inside({const_cast<float*>(at), 0, gradient.values.device}).data;
  };
  for (OuterProduct& outer : entered.outers) {
    outer.down = inside(outer.down);
    outer.across = inside(outer.across);
  }
  return entered;
}

template <auto F>
struct Later;
template <class... Args, void (*F)(SharedTeam*, Args...)>
struct Later<F> {
  static void Call(Queue& queue, Args... args) {
    const auto& device = static_cast<const PretendDevice&>(queue.device());
    static_cast<PretendQueue&>(queue).Do([&device, ... copies = std::decay_t<Args>(args)] {
      F(nullptr, Entered(device, copies)...);
    });
  }
};

PretendDevice& DeviceOf(const Queue& queue) { return static_cast<PretendDevice&>(queue.device()); }

// The host's side is looked at twice: it must still be there when the copy runs.
void PutLater(Queue& queue, const float* host, Slice to) {
  PretendDevice& device = DeviceOf(queue);
  device.CheckReach(host, to.size * sizeof(float));
  auto& pretend = static_cast<PretendQueue&>(queue);
  pretend.Do([&device, &pretend, host, to] {
    device.CheckReach(host, to.size * sizeof(float));
    host::Put(nullptr, host, device.Inside(to));
    pretend.Spend(PretendWork::kPut);
  });
}
void GetLater(Queue& queue, Slice from, float* host) {
  PretendDevice& device = DeviceOf(queue);
  device.CheckReach(host, from.size * sizeof(float));
  auto& pretend = static_cast<PretendQueue&>(queue);
  pretend.Do([&device, &pretend, from, host] {
    device.CheckReach(host, from.size * sizeof(float));
    host::Get(nullptr, device.Inside(from), host);
    pretend.Spend(PretendWork::kGet);
  });
}

// Every update begins with it.
void CheckAndClipLater(Queue& queue, Gradient gradients, Slice statistics, float clip,
                       const LossScaling& loss, Slice scale) {
  Later<host::CheckAndClip>::Call(queue, gradients, statistics, clip, loss, scale);
  auto& pretend = static_cast<PretendQueue&>(queue);
  pretend.Do([&pretend] { pretend.Spend(PretendWork::kUpdate); });
}

constexpr FlatTable kPretendTable = [] {
  FlatTable table = host::LiftedTable<Later>();
  table.check_and_clip = CheckAndClipLater;
  table.put = PutLater;
  table.get = GetLater;
  return table;
}();

}  // namespace

class PretendDevice::Fired : public EventState {
 public:
  void Wait() override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kDeadline, [this] { return fired_; })) {
      throw Error("pretend: an event has not fired for {} s", kDeadline.count());
    }
  }
  bool HasFired() override {
    const std::lock_guard lock(mutex_);
    return fired_;
  }
  double FiredAt() override {
    Wait();
    return passed_s_;
  }
  void Pass(double now_s) { passed_s_ = now_s; }
  void Fire() {
    const std::lock_guard lock(mutex_);
    fired_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool fired_ = false;   // guarded by mutex_
  double passed_s_ = 0;  // written before it fires
};

PretendDevice::PretendDevice(Seconds seconds)
    : seconds_(std::move(seconds)),
      outside_(Reserve()),
      inside_(Reserve()),
      firing_([this](std::stop_token stop) { FireEvents(stop); }) {}

PretendDevice::~PretendDevice() {
  firing_.request_stop();
  firing_.join();
  munmap(outside_, kRegion);
  munmap(inside_, kRegion);
}

const FlatTable& PretendDevice::table() const { return kPretendTable; }

std::unique_ptr<Queue> PretendDevice::NewQueue() {
  return std::make_unique<PretendQueue>(*this, ++queues_);
}

// Each slice ends (but for its alignment) where a page ends that no other slice begins after: what
// runs over its end crashes.
Slice PretendDevice::Allocate(size_t floats) {
  const size_t bytes = RoundUp(floats * sizeof(float), 64);
  const size_t pages = RoundUp(bytes, Page());
  const std::lock_guard lock(mutex_);
  if (floats > kRegion / sizeof(float) || used_ + pages + Page() > kRegion) {
    throw Error("pretend: no memory for {} floats", floats);
  }
  std::byte* const at = inside_ + used_;
  if (pages > 0 && mprotect(at, pages, PROT_READ | PROT_WRITE) != 0) {
    throw Error("pretend: no memory for {} floats", floats);
  }
  const size_t begin = used_ + pages - bytes;
  used_ += pages + Page();
  allocated_ += floats * sizeof(float);
  return {reinterpret_cast<float*>(outside_ + begin), floats, this};
}

void PretendDevice::Free(Slice slice) noexcept {
  if (slice.size == 0) return;
  allocated_ -= slice.size * sizeof(float);
  const size_t begin = size_t(reinterpret_cast<std::byte*>(slice.data) - outside_);
  const size_t first = begin / Page() * Page();
  const size_t pages = RoundUp(begin + slice.size * sizeof(float), Page()) - first;
  madvise(inside_ + first, pages, MADV_DONTNEED);
  mprotect(inside_ + first, pages, PROT_NONE);  // work that comes too late crashes
}

size_t PretendDevice::free_bytes() const {
  const std::lock_guard lock(mutex_);
  return kRegion - used_;
}

void* PretendDevice::AllocateHost(size_t bytes) {
  const size_t whole = RoundUp(bytes, 64);
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(64, whole));
  if (!memory) throw Error("pretend: no host memory for {} bytes", bytes);
  std::fill_n(memory, whole, std::byte{});
  Register({memory, bytes});
  return memory;
}

void PretendDevice::FreeHost(void* memory, size_t bytes) noexcept {
  Unregister({static_cast<std::byte*>(memory), bytes});
  std::free(memory);
}

void PretendDevice::Register(std::span<std::byte> memory) {
  const std::lock_guard lock(mutex_);
  TRIREME_ASSERT(reached_.emplace(memory.data(), memory.size()).second);
}

void PretendDevice::Unregister(std::span<std::byte> memory) noexcept {
  const std::lock_guard lock(mutex_);
  TRIREME_ASSERT(reached_.erase(memory.data()) == 1);
}

void PretendDevice::CheckReach(const void* host, size_t bytes) {
  if (bytes == 0) return;
  const auto* const at = static_cast<const std::byte*>(host);
  const std::lock_guard lock(mutex_);
  const auto after = reached_.upper_bound(at);
  if (after != reached_.begin()) {
    const auto& [begin, size] = *std::prev(after);
    if (at + bytes <= begin + size) return;
  }
  std::fprintf(stderr,
               "pretend: %zu bytes are copied to or from host memory that was neither allocated "
               "nor registered by the device\n",
               bytes);
  std::abort();
}

Slice PretendDevice::Inside(Slice slice) const {
  if (!slice.device) return slice;  // an empty one that was left out
  TRIREME_ASSERT(slice.device == this);
  const auto offset = reinterpret_cast<std::byte*>(slice.data) - outside_;
  return {reinterpret_cast<float*>(inside_ + offset), slice.size, slice.device};
}

void PretendDevice::FireLate(std::shared_ptr<Fired> event) {
  const std::lock_guard lock(mutex_);
  due_.push_back(std::move(event));
  changed_.notify_all();
}

void PretendDevice::FireEvents(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !due_.empty(); })) {
    const std::shared_ptr<Fired> event = std::move(due_.front());
    due_.pop_front();
    lock.unlock();
    std::this_thread::sleep_for(kFiringDelay);
    event->Fire();
    lock.lock();
  }
}

PretendQueue::PretendQueue(PretendDevice& device, uint64_t seed)
    : Queue(device),
      pretend_(device),
      random_(uint32_t(seed)),
      thread_([this](std::stop_token stop) { Work(stop); }) {}

PretendQueue::~PretendQueue() {
  thread_.request_stop();
  thread_.join();
}

Event PretendQueue::Record() {
  auto event = std::make_shared<PretendDevice::Fired>();
  Push([this, event] {
    event->Pass(Time());
    pretend_.FireLate(event);
  });
  return Event(event);
}

void PretendQueue::Wait(const Event& event) {
  TRIREME_ASSERT(event.recorded());
  if (!event.state()) return;
  Push([this, event] {
    event.Wait();
    time_s_ = std::max(time_s_, event.FiredAt());
  });
}

double PretendQueue::Time() const { return pretend_.seconds_ ? time_s_ : Now(); }

void PretendQueue::Spend(PretendWork work) {
  if (pretend_.seconds_) time_s_ += pretend_.seconds_(work);
}

void PretendQueue::Do(std::function<void()> command) { Push(std::move(command)); }

void PretendQueue::Push(std::function<void()> command) {
  const std::lock_guard lock(mutex_);
  commands_.push_back(std::move(command));
  changed_.notify_all();
}

void PretendQueue::Work(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !commands_.empty(); })) {
    const std::function<void()> command = std::move(commands_.front());
    commands_.pop_front();
    lock.unlock();
    if (random_() % 8 == 0) std::this_thread::sleep_for(random_() % 100 * 1us);
    try {
      command();
    } catch (const std::exception& error) {  // like a device: there is nobody to tell
      std::fprintf(stderr, "pretend: %s\n", error.what());
      std::abort();
    }
    lock.lock();
  }
}

}  // namespace trireme
