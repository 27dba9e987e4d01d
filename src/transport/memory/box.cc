#include "transport/memory/box.h"

#include <fmt/format.h>

#include "base/start_thread.h"
#include "base/text.h"
#include "transport/memory/mapped.h"
#include "transport/memory/snapshot.h"

namespace trireme {
namespace {

constexpr double kSweep_s = 0.25;  // between looks at whether mapped clients live

std::shared_ptr<MemoryImage> ImageFor(const MemoryBoxSetup& setup) {
  return setup.file.empty() ? MemoryImage::Anonymous(setup.bytes)
                            : MemoryImage::File(setup.file, setup.bytes);
}

std::string SnapshotOf(const std::string& file) { return file + ".snapshot"; }

}  // namespace

MemoryBox::MemoryBox(const MemoryBoxSetup& setup) : MemoryBox(ImageFor(setup), setup) {}

MemoryBox::MemoryBox(std::shared_ptr<MemoryImage> image, const MemoryBoxSetup& setup)
    : setup_(setup), image_(std::move(image)), store_(image_, setup.threads, setup.timeout_s) {
  BoxHeader& head = image_->header();
  head.closed.store(0);
  Restore();
  thread_ = StartThread("the thread of the memory box",
                        [this](std::stop_token stop) { Serve(std::move(stop)); });
  if (!setup_.file.empty() && setup_.snapshot_s > 0) {
    // What changes from here on is for the next snapshot, however late the thread begins.
    snapshots_ = StartThread("the thread that takes snapshots",
                             [this, taken = head.changes.load()](const std::stop_token& stop) {
                               TakeSnapshots(stop, taken);
                             });
  }
}

MemoryBox::~MemoryBox() {
  BoxHeader& head = image_->header();
  thread_.request_stop();
  head.posted.Notify();
  thread_.join();
  head.closed.store(1);
  for (SessionRecord& session : head.sessions) session.answered.Notify();
  for (RegionRecord& region : head.regions) region.changed.Notify();
  if (snapshots_.joinable()) {
    snapshots_.request_stop();
    snapshots_.join();
  }
  if (!setup_.file.empty()) image_->Close();
}

// What the last snapshot had, where the file has nothing.
void MemoryBox::Restore() {
  if (setup_.file.empty() || !image_->fresh()) return;
  const std::string path = SnapshotOf(setup_.file);
  if (ReadSnapshot(store_, path) && setup_.say) {
    setup_.say(fmt::format("{} has no contents that can be trusted; restored {} from {}",
                           setup_.file, Counted(store_.CountRegions(), "region"), path));
  }
}

void MemoryBox::TakeSnapshots(const std::stop_token& stop, uint64_t taken) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait_for(lock, stop, std::chrono::duration<double>(setup_.snapshot_s),
                     [] { return false; });
    if (stop.stop_requested()) return;
    const uint64_t now = image_->header().changes.load();
    if (now == taken) continue;
    try {
      WriteSnapshot(store_, SnapshotOf(setup_.file));
      taken = now;
    } catch (const Error& error) {  // a full disk: the old one is still there
      if (setup_.say) setup_.say(fmt::format("no snapshot was taken: {}", error.what()));
    }
  }
}

std::unique_ptr<Memory> MemoryBox::Connect() { return ConnectMapped(image_, setup_.timeout_s); }

void MemoryBox::Serve(std::stop_token stop) {
  BoxHeader& head = image_->header();
  const int spins = SpinsFor(2);
  Deadline sweep = After(kSweep_s);
  while (!stop.stop_requested()) {
    const uint32_t count = head.posted.Count();
    AnswerWords();
    if (After(0) >= sweep) {
      store_.EndDead();
      sweep = After(kSweep_s);
    }
    head.posted.Wait(count, sweep, spins);
  }
}

void MemoryBox::AnswerWords() {
  const uint32_t top = image_->header().session_top.load();
  for (uint32_t number = 0; number < top; ++number) {
    SessionRecord& session = image_->session(number);
    if (session.posted.load(std::memory_order_acquire) == 0 || session.client.load() == 0) continue;
    __builtin_prefetch(image_->at(session.slot));  // short values come while the word does
    CopyWord(session.word, word_);                 // what is checked is what is done
    const Reply answer = store_.Do(number, word_);
    if (word_.kind == WordKind::kLeave) continue;
    CopyReply(answer, session.answer);
    session.posted.store(0, std::memory_order_release);
    session.answered.Notify();
  }
}

}  // namespace trireme
