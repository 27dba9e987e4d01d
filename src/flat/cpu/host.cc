#include "flat/cpu/host.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/clock.h"
#include "base/error.h"
#include "flat/cpu/host_ops.h"

namespace trireme {
namespace {

class HostQueue : public Queue {
 public:
  HostQueue(HostDevice& device, SharedTeam* team) : Queue(device), team_(team) {}
  Event Record() override { return Event::Fired(); }
  Event Mark() override { return Event::Fired(Now()); }
  // Work runs when it is enqueued, so there is nobody but the caller to wait.
  void Wait(const Event& event) override { event.Wait(); }
  SharedTeam* team() const { return team_; }

 private:
  SharedTeam* const team_;
};

template <auto F>
struct AtOnce;
template <class... Args, void (*F)(SharedTeam*, Args...)>
struct AtOnce<F> {
  static void Call(Queue& queue, Args... args) {
    F(static_cast<HostQueue&>(queue).team(), args...);
  }
};

constexpr FlatTable kHostTable = host::LiftedTable<AtOnce>();
constexpr size_t kCacheLine = 64;  // bytes
constexpr size_t kHugePage = 2 << 20;

// What is at least `huge` bytes long lies on huge pages, where the system has them: fewer address
// misses, and what a processor fetches ahead does not end with each small page.
void* AllocateZeroed(size_t bytes, size_t huge) {
  const size_t alignment = bytes >= huge ? kHugePage : kCacheLine;
  if (bytes > std::numeric_limits<size_t>::max() - alignment) return nullptr;
  bytes = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, bytes);
  if (!memory) return nullptr;
  if (alignment == kHugePage) madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: may fail
  return std::memset(memory, 0, bytes);
}

}  // namespace

HostDevice::HostDevice(Team* team) : team_(team ? new SharedTeam{*team} : nullptr) {}
HostDevice::~HostDevice() = default;

const FlatTable& HostDevice::table() const { return kHostTable; }

std::unique_ptr<Queue> HostDevice::NewQueue() {
  return std::make_unique<HostQueue>(*this, team_.get());
}

Slice HostDevice::Allocate(size_t floats) {
  if (floats == 0) return {nullptr, 0, this};
  const bool counts = floats <= std::numeric_limits<size_t>::max() / sizeof(float);
  // Half a page is enough: the weights of middle-sized networks.
  void* memory = counts ? AllocateZeroed(floats * sizeof(float), kHugePage / 2) : nullptr;
  if (!memory) throw Error("cpu: no memory for {} floats", floats);
  allocated_.fetch_add(floats * sizeof(float), std::memory_order_relaxed);
  return {static_cast<float*>(memory), floats, this};
}

void HostDevice::Free(Slice slice) noexcept {
  allocated_.fetch_sub(slice.size * sizeof(float), std::memory_order_relaxed);
  std::free(slice.data);
}

void* HostDevice::AllocateHost(size_t bytes) {
  void* memory = AllocateZeroed(bytes, kHugePage);  // of samples there are many
  if (!memory) throw Error("cpu: no memory for {} bytes", bytes);
  return memory;
}

void HostDevice::FreeHost(void* memory, size_t) noexcept { std::free(memory); }

}  // namespace trireme
