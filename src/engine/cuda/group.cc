#include "engine/cuda/group.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "engine/cuda/check.h"
#include "engine/cuda/nccl.h"

namespace trireme::cuda {
namespace {

using namespace std::chrono_literals;

constexpr double kJoinDeadline = 120;  // seconds; NCCL knows none
constexpr auto kBetweenLooks = 20ms;
constexpr auto kComeOut = 2s;  // of a call that may wait for a lost rank's network

// Calls are made for one card at a time: the thread's current one.
class NcclGroup : public DeviceGroup {
 public:
  NcclGroup(std::shared_ptr<const Nccl> nccl, CudaDevice& card, NcclCommunicator* communicator)
      : nccl_(std::move(nccl)), card_(card), communicator_(communicator) {}

  // All members come here at about the same time; they would wait for each other.
  ~NcclGroup() override {
    cudaSetDevice(card_.index());
    if (communicator_) nccl_->ncclCommDestroy(communicator_);
  }

  void Sum(Queue& queue, Slice slice) override {
    TRIREME_ASSERT(&queue.device() == &card_ && slice.device == &card_);
    card_.Select();
    const std::lock_guard lock(mutex_);
    if (!communicator_) throw Error("{}: the sums of its group were aborted", card_.name());
    nccl_->Check(nccl_->ncclAllReduce(slice.data, slice.data, slice.size, kNcclFloat32, kNcclSum,
                                      communicator_, static_cast<CudaQueue&>(queue).stream()),
                 "ncclAllReduce");
  }

  std::string Failure() override {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || !communicator_) return "";
    NcclStatus error = kNcclSuccess;
    const NcclStatus status = nccl_->ncclCommGetAsyncError(communicator_, &error);
    if (status != kNcclSuccess) error = status;
    if (error == kNcclSuccess || error == kNcclInProgress) return "";
    return fmt::format(
        "{}: a sum between cards failed: {} (NCCL {}; NCCL_DEBUG=WARN makes it say "
        "more)",
        card_.name(), nccl_->ncclGetErrorString(error), nccl_->version);
  }

  // A first sum may stand in its call until a lost rank's network answers: then it is aborted from
  // outside, which is better than to wait for ever.
  void Abort() noexcept override {
    std::unique_lock lock(mutex_, std::defer_lock);
    lock.try_lock_for(kComeOut);
    NcclCommunicator* const communicator = std::exchange(communicator_, nullptr);
    if (!communicator || cudaSetDevice(card_.index()) != cudaSuccess) return;
    nccl_->ncclCommAbort(communicator);
  }

 private:
  const std::shared_ptr<const Nccl> nccl_;
  CudaDevice& card_;
  std::timed_mutex mutex_;
  NcclCommunicator* communicator_;  // null: aborted; guarded by mutex_
};

// What a thread that joins leaves behind, also for nobody.
struct Joining {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;  // guarded by mutex, as is all below
  NcclStatus status = kNcclSuccess;
  NcclCommunicator* communicator = nullptr;
};

class NcclGroups : public DeviceGroups {
 public:
  explicit NcclGroups(CudaDevice& card) : card_(card) {}

  std::string name() const override {
    const auto [nccl, problem] = Open();
    return nccl ? fmt::format("NCCL {}", nccl->version) : "";
  }
  std::string problem() const override { return Open().second; }

  // The card's own number in all the world, not its place here, which differs between processes.
  std::string identity() const override {
    std::string text;
    for (const char byte : card_.properties().uuid.bytes) text += fmt::format("{:02x}", byte & 255);
    return text;
  }

  Id NewId() override {
    NcclId id;
    const auto nccl = Opened();
    nccl->Check(nccl->ncclGetUniqueId(&id), "ncclGetUniqueId");
    Id bytes;
    static_assert(sizeof(Id) == sizeof(NcclId));
    std::memcpy(bytes.data(), &id, sizeof(id));
    return bytes;
  }

  // ncclCommInitRank waits for all ranks, also for those that are lost, and nothing ends it: it
  // gets a thread of its own, which is left to itself when this gives up.
  std::unique_ptr<DeviceGroup> Join(const Id& bytes, int rank, int size,
                                    FunctionRef<void()> look) override {
    const auto nccl = Opened();
    NcclId id;
    std::memcpy(&id, bytes.data(), sizeof(id));
    const auto joining = std::make_shared<Joining>();
    std::thread([nccl, id, rank, size, joining, card = card_.index()] {
      NcclCommunicator* communicator = nullptr;
      NcclStatus status = NcclStatus(1);  // ncclUnhandledCudaError
      if (cudaSetDevice(card) == cudaSuccess) {
        status = nccl->ncclCommInitRank(&communicator, size, id, rank);
      }
      const std::lock_guard lock(joining->mutex);
      joining->done = true;
      joining->status = status;
      joining->communicator = communicator;
      joining->changed.notify_all();
    }).detach();
    const double start = Now();
    std::unique_lock lock(joining->mutex);
    while (!joining->changed.wait_for(lock, kBetweenLooks, [&] { return joining->done; })) {
      lock.unlock();
      look();
      if (Now() - start > kJoinDeadline) {
        throw Error(
            "{}: NCCL has not brought {} ranks together for {:.0f} s; NCCL_DEBUG=INFO says what it "
            "waits for, --set strategy.algorithm=ring does without it",
            card_.name(), size, kJoinDeadline);
      }
      lock.lock();
    }
    nccl->Check(joining->status, "ncclCommInitRank");
    return std::make_unique<NcclGroup>(nccl, card_, joining->communicator);
  }

 private:
  // NCCL, or why there is none.
  static std::pair<std::shared_ptr<const Nccl>, std::string> Open() {
    try {
      return {OpenNccl(), ""};
    } catch (const Error& error) {
      return {nullptr, error.what()};
    }
  }
  static std::shared_ptr<const Nccl> Opened() { return OpenNccl(); }

  CudaDevice& card_;
};

}  // namespace

std::unique_ptr<DeviceGroups> MakeGroups(CudaDevice& device) {
  return std::make_unique<NcclGroups>(device);
}

std::string NcclText() {
  try {
    return "NCCL " + OpenNccl()->version;
  } catch (const Error& error) {
    return fmt::format("no NCCL: {}", error.what());
  }
}

}  // namespace trireme::cuda
