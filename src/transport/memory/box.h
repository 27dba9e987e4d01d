#pragma once
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "transport/memory.h"
#include "transport/memory/store.h"

namespace trireme {

struct MemoryBoxSetup {
  size_t bytes = size_t{64} << 20;  // for regions, their rings and the slots of clients
  std::string file = {};            // where the contents are kept; empty: they end with the box
  double snapshot_s = 0;            // with a file: between snapshots of it; 0: none
  std::function<void(const std::string& words)> say = {};  // told what the user should know
  int threads = 1;                                         // that add
  double timeout_s = 60;  // after which a client that is cut off has ended
};

// The server of a Memory. Its contents are in memory that the processes forked afterwards share,
// or in a file that other processes map, so those can connect by the way `mapped`. Thread-safe.
class MemoryBox {
 public:
  explicit MemoryBox(const MemoryBoxSetup& setup);
  // On an image that is there already: what a killed box had begun is finished first.
  MemoryBox(std::shared_ptr<MemoryImage> image, const MemoryBoxSetup& setup);
  ~MemoryBox();  // clients find it gone

  std::unique_ptr<Memory> Connect();  // the way `mapped`
  MemoryStore& store() { return store_; }
  const MemoryBoxSetup& setup() const { return setup_; }

 private:
  void Serve(std::stop_token stop);  // the words of mapped clients
  void AnswerWords();
  void Restore();
  void TakeSnapshots(const std::stop_token& stop,
                     uint64_t taken);  // so many changes are in the last

  const MemoryBoxSetup setup_;
  const std::shared_ptr<MemoryImage> image_;
  MemoryStore store_;
  Word word_;  // that is answered: the thread's
  std::jthread thread_, snapshots_;
};

}  // namespace trireme
