#include "pretend/group.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <new>
#include <thread>

#include "base/clock.h"
#include "base/error.h"

namespace trireme {
namespace {

using namespace std::chrono_literals;

constexpr int kMostRanks = 8;
constexpr int kMostRooms = 64;
constexpr size_t kMostFloats = 1 << 15;
constexpr double kDeadline_s = 300;  // to find what hangs, even on a busy machine

}  // namespace

struct PretendWires::Room {
  struct Member {
    std::atomic<int> joined = 0;
    std::atomic<int64_t> left = 0, taken = 0;  // sums so far
    size_t size = 0;                           // of the one that was left last
    float values[kMostFloats] = {};
  };
  Member members[kMostRanks];
};

struct PretendWires::Shared {
  std::atomic<int> rooms_used = 0;
  std::atomic<int64_t> sums = 0;
  Room rooms[kMostRooms];
};

PretendWires::PretendWires(Fault fault) : fault_(fault) {
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw Error("pretend: no memory for wires");
  shared_ = static_cast<Shared*>(memory);  // zeroed, as all of it begins
}

PretendWires::~PretendWires() { munmap(shared_, sizeof(Shared)); }

int64_t PretendWires::sums() const { return shared_->sums; }

class PretendGroup : public DeviceGroup {
 public:
  PretendGroup(PretendWires& wires, PretendDevice& device, PretendWires::Room& room, int rank,
               int size)
      : wires_(wires), device_(device), room_(room), rank_(rank), size_(size) {}

  void Sum(Queue& queue, Slice slice) override {
    TRIREME_ASSERT(&queue.device() == &device_ && slice.device == &device_);
    TRIREME_ASSERT(slice.size <= kMostFloats);
    if (aborted_) throw Error("pretend: the sums of this group were aborted");
    if (Has(Fault::kThrows, enqueued_)) throw Error("pretend: the card has burnt");
    auto& pretend = static_cast<PretendQueue&>(queue);
    pretend.Do([this, slice, number = enqueued_++, &pretend] {
      const Slice inside = device_.Inside(slice);
      if (!aborted_ && AddUp(number, {inside.data, inside.size})) {
        ++wires_.shared_->sums;
        pretend.Spend(PretendWork::kSum);
      } else {  // anything
        std::fill_n(inside.data, inside.size, std::numeric_limits<float>::quiet_NaN());
      }
    });
  }

  void Abort() noexcept override { aborted_ = true; }

 private:
  using Fault = PretendWires::Fault;
  bool Has(decltype(Fault::kind) kind, int64_t sum) const {
    const Fault& fault = wires_.fault_;
    return fault.kind == kind && fault.rank == rank_ && fault.sum == sum;
  }

  PretendWires::Room::Member& member(int rank) { return room_.members[rank]; }

  // False: it was aborted.
  bool AddUp(int64_t number, std::span<float> values) {
    if (Has(Fault::kDies, number)) kill(getpid(), SIGKILL);
    // The others have taken what was here before.
    if (!All([number](const auto& each) { return each.taken >= number; })) return false;
    auto& own = member(rank_);
    own.size = values.size();
    std::ranges::copy(values, own.values);
    own.left = number + 1;
    if (!All([number](const auto& each) { return each.left > number; })) return false;
    for (int r = 0; r < size_; ++r) {
      TRIREME_ASSERT(member(r).size == values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = r == 0 ? member(0).values[i] : values[i] + member(r).values[i];
      }
    }
    own.taken = number + 1;
    return true;
  }

  // Waits until it holds for all members; false: until this one was aborted.
  template <class Holds>
  bool All(const Holds& holds) {
    const double start = Now();
    for (int r = 0; r < size_; ++r) {
      while (!holds(member(r))) {
        if (aborted_) return false;
        if (Now() - start > kDeadline_s) throw Error("pretend: rank {} does not come", r);
        std::this_thread::sleep_for(50us);
      }
    }
    return true;
  }

  PretendWires& wires_;
  PretendDevice& device_;
  PretendWires::Room& room_;
  const int rank_, size_;
  int64_t enqueued_ = 0;
  std::atomic<bool> aborted_ = false;
};

class PretendGroups : public DeviceGroups {
 public:
  PretendGroups(PretendWires& wires, PretendDevice& device, int number)
      : wires_(wires), device_(device), number_(number) {}

  std::string name() const override { return "pretended wires"; }
  std::string problem() const override { return ""; }
  std::string identity() const override { return fmt::format("pretended {}", number_); }

  Id NewId() override {
    const int room = wires_.shared_->rooms_used++;
    TRIREME_ASSERT(room < kMostRooms);
    Id id{};
    std::memcpy(id.data(), &room, sizeof(room));
    return id;
  }

  std::unique_ptr<DeviceGroup> Join(const Id& id, int rank, int size,
                                    FunctionRef<void()> look) override {
    TRIREME_ASSERT(size <= kMostRanks);
    int number;
    std::memcpy(&number, id.data(), sizeof(number));
    PretendWires::Room& room = wires_.shared_->rooms[number];
    room.members[rank].joined = 1;
    for (int r = 0; r < size; ++r) {
      while (!room.members[r].joined) {
        look();
        std::this_thread::sleep_for(50us);
      }
    }
    return std::make_unique<PretendGroup>(wires_, device_, room, rank, size);
  }

 private:
  PretendWires& wires_;
  PretendDevice& device_;
  const int number_;
};

std::unique_ptr<DeviceGroups> PretendWires::Groups(PretendDevice& device, int number) {
  return std::make_unique<PretendGroups>(*this, device, number);
}

}  // namespace trireme
