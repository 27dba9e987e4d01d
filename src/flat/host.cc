#include "flat/host.h"

#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "flat/host_ops.h"

namespace trireme {
namespace {

class HostQueue : public Queue {
 public:
  HostQueue(HostDevice& device, Team* team) : Queue(device), team_(team) {}
  Event Record() override { return Event::Fired(); }
  // Work runs when it is enqueued, so there is nobody but the caller to wait.
  void Wait(const Event& event) override { event.Wait(); }
  Team* team() const { return team_; }

 private:
  Team* const team_;
};

template <auto F>
struct Now;
template <class... Args, void (*F)(Team*, Args...)>
struct Now<F> {
  static void Call(Queue& queue, Args... args) {
    F(static_cast<HostQueue&>(queue).team(), args...);
  }
};

constexpr FlatTable kHostTable = host::LiftedTable<Now>();
constexpr size_t kAlignment = 64;  // bytes

}  // namespace

const FlatTable& HostDevice::table() const { return kHostTable; }

std::unique_ptr<Queue> HostDevice::NewQueue(Team* team) {
  return std::make_unique<HostQueue>(*this, team);
}

Slice HostDevice::Allocate(size_t floats) {
  if (floats == 0) return {nullptr, 0, this};
  void* memory = nullptr;
  if (floats <= std::numeric_limits<size_t>::max() / sizeof(float) - kAlignment) {
    const size_t bytes = (floats * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
    memory = std::aligned_alloc(kAlignment, bytes);
    if (memory) std::memset(memory, 0, bytes);
  }
  if (!memory) throw Error("cpu: no memory for {} floats", floats);
  return {static_cast<float*>(memory), floats, this};
}

void HostDevice::Free(Slice slice) noexcept { std::free(slice.data); }

}  // namespace trireme
