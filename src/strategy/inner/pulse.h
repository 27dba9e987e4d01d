#pragma once
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "transport/group.h"

namespace trireme {

// Finds out that a group is finished while its members have nothing to say to each other: a thread
// of each exchanges a byte with the others several times a second. Where the work of devices waits
// for other ranks' devices, nothing else would tell.
class GroupPulse {
 public:
  // On the thread: `look` throws what else ends the group; `lost` is called once when the group is
  // finished, after Check throws.
  GroupPulse(Group& group, std::function<void()> look, std::function<void()> lost);
  ~GroupPulse();  // without Leave: the group is aborted

  // Throws what the group ended with; one load where it has not.
  void Check() const;
  // All members call it. Returns when all have, or the group is finished.
  void Leave() noexcept;

 private:
  void Beat();

  Group& group_;
  const std::function<void()> look_, lost_;
  std::atomic<bool> finished_ = false;
  std::exception_ptr error_;  // written before finished_
  std::mutex mutex_;
  std::condition_variable changed_;
  bool leaving_ = false;  // guarded by mutex_
  std::jthread thread_;
};

}  // namespace trireme
