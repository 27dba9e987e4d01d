#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/observer.h"
#include "data/loader.h"
#include "record/metrics.h"
#include "strategy/step/work.h"

namespace trireme {

// The data generator of `bsp`, the only source of samples for the workers of a process: a thread
// that fetches the shards of all workers, in the order of steps and ahead of need, into a bounded
// queue. Whose a shard is the workers know (see RandomWork); who comes before it waits.
//
// Thread-safe. Workers advance in step and release what they took before they take more.
class Generator {
 public:
  // The queue holds so many `steps`. `threads`: that help the generator's own to fetch; 0: none.
  Generator(Feed feed, const Plan& plan, int shard_capacity, int steps, int threads);

  // Of one shard, in the queue until Release.
  struct Samples {
    std::span<const float> inputs;
    std::span<const int32_t> labels;
    std::span<const LabelMix> mixes;  // empty: none is mixed
    Positions range;
    int64_t number = 0;  // for Release
  };
  // A shard of `step` that is not empty. The first that is taken says where the generator begins.
  // Throws what fetching threw.
  Samples Take(int64_t step, int shard);
  void Release(int64_t number);

  // Shows how many samples lie ready, whenever that changes; null: no longer.
  void ShowQueue(SpanSink* spans);
  LoaderRecord record();

 private:
  struct Entry {
    int64_t step = 0;
    int shard = 0;
    Filled filled;
    bool released = false;
  };
  Entry& entry(int64_t number) { return entries_[size_t(number) % entries_.size()]; }
  int64_t Find(int64_t step, int shard);  // its number; -1: it is not filled yet
  bool CanFree() { return freed_ < filled_ && entry(freed_).released; }
  bool RoomIsWanted();
  void WakeForRoom();
  bool NextShard(Shard& shard);
  void AskForMore();
  bool AwaitRequest(std::unique_lock<std::mutex>& lock, const std::stop_token& stop);
  void Run(const std::stop_token& stop);
  void CountReady(int shards, int64_t samples);

  const Plan plan_;
  std::vector<float> inputs_;
  std::vector<int32_t> labels_;
  std::vector<LabelMix> mixes_;
  std::vector<Slot> slots_;
  Loader loader_;  // of the generator's thread

  std::mutex mutex_;  // guards all below
  std::condition_variable_any room_, here_;
  std::vector<Entry> entries_;                                 // by number, one per slot
  int64_t asked_ = 0, filled_ = 0, released_ = 0, freed_ = 0;  // numbers; freed: in order
  int waiting_ = 0;                                            // workers
  int64_t next_step_ = -1;                                     // to ask for; -1: nobody has come
  Work next_;                                                  // ... all its shards
  size_t next_shard_ = 0;                                      // ... and the next of them
  std::exception_ptr error_;
  SpanSink* spans_ = nullptr;
  LoaderRecord numbers_;
  const double began_;
  int64_t ready_samples_ = 0;
  int ready_ = 0;
  double ready_since_;
  std::jthread thread_;  // last, so that it ends before what it uses
};

}  // namespace trireme
