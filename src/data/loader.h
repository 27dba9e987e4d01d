#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "data/feed.h"
#include "data/thread_tuner.h"

namespace trireme {

// A request that lies ready in a slot.
struct Filled {
  int slot = 0;
  int count = 0;
  Positions range;
};

// What a loader did since it was made.
struct LoaderNumbers {
  int threads = 0;           // now
  int ready = 0;             // requests that are filled and not taken, now
  int64_t taken = 0;         // requests
  double seconds = 0;        // since it was made
  double waited_s = 0;       // of them, in Take
  double ready_at_take = 0;  // requests that lay ready when one was asked for, summed over takes
  double ready_s = 0;        // requests that lay ready, summed over time
  FetchTimes fetched;
};

// What it takes to find out a sample's number, label and change: as much as copying so many values.
constexpr int64_t kNumberWork = 64;

// How many threads a loader should have: `threads` if it is a number. "auto": none where a request
// is filled faster than a thread is woken, or where there is but one core; else as many as
// computing leaves of the cores, at least one, and no more than a request has parts that are worth
// a thread. Where samples are decoded each is worth one, and there are more threads, up to the
// cores, as long as they help.
LoaderThreads ChooseLoaderThreads(const IntOrWord& threads, int64_t values_per_request, int cores,
                                  int computing, bool decodes);

// Fills slots with the samples of ranges, ahead of need. Requests are delivered in the order of
// Want, in slots 0, 1, ..., 0, 1, ...; their contents depend on the feed and the range alone.
// With 0 threads Take fills the slot itself: no lock, no allocation.
//
// One thread calls the methods. The feed's source and the slots' memory outlive the loader, whose
// destructor waits for the samples being read at that moment and no longer.
class Loader {
 public:
  Loader(Feed feed, std::vector<Slot> slots, const LoaderThreads& threads);
  Loader(Feed feed, std::vector<Slot> slots, int threads)
      : Loader(std::move(feed), std::move(slots), LoaderThreads{threads, threads}) {}

  // Every slot, all of the same form, holds one request from Want to Release.
  bool HasRoom() const { return wanted_ - released_ < num_slots(); }
  void Want(const Positions& range);  // not empty; only with HasRoom()

  // The oldest request not yet taken, filled. Throws what its reading threw. Valid until released.
  const Filled& Take();
  void Release();  // gives back the oldest taken slot

  // What comes now is not the loader's business, such as an evaluation: its time does not tell
  // whether there are threads enough.
  void Pause() { tuned_taken_ = -1; }

  const Feed& feed() const { return feed_; }

  LoaderNumbers numbers();

 private:
  struct Request {
    Filled filled;
    int64_t threads = 0;       // that share it
    int64_t claimed = 0;       // samples; guarded by mutex_
    int64_t finished = 0;      // the same
    std::exception_ptr error;  // guarded by mutex_
  };

  int64_t num_slots() const { return static_cast<int64_t>(slots_.size()); }
  int64_t Work() const;  // that a sample is, in values to copy
  Request& request(int64_t number) { return requests_[number % num_slots()]; }
  Positions Claim(Request& request) const;  // samples that nobody has, under mutex_
  void FillPiece(const Filled& filled, const Positions& piece, FetchTimes& times) const;
  void TakeInline(Request& request);
  void TakeFromThreads(Request& request);
  void CountReady(int change);  // under mutex_
  void Tune();
  void SetThreads(int count);
  void RunThread(std::stop_token stop);

  const Feed feed_;
  const std::vector<Slot> slots_;
  std::vector<Request> requests_;  // one per slot
  int64_t wanted_ = 0;             // numbers of requests; written under mutex_
  int64_t taken_ = 0;
  int64_t released_ = 0;

  const double began_;
  std::mutex mutex_;
  LoaderNumbers numbers_;   // guarded by mutex_ where there are threads
  int ready_ = 0;           // filled and not yet taken; guarded by mutex_
  double ready_since_ = 0;  // guarded by mutex_
  std::condition_variable_any work_, done_;
  int64_t unclaimed_ = 0;  // the first request with samples to claim; guarded by mutex_
  ThreadTuner tuner_;
  LoaderNumbers tuned_at_;    // when its last stretch ended
  int64_t tuned_taken_ = -1;  // the same; -1: at the next Take

  std::vector<std::jthread> retired_, threads_;  // last, so that they end before what they use
};

}  // namespace trireme
