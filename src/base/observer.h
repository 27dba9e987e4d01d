#pragma once
#include <atomic>
#include <cstdint>

namespace trireme {

// What a rank does at a moment, in the order of a step and of what may follow it.
enum class Phase : uint8_t {
  kStart,
  kData,
  kCompute,
  kBatchNorm,  // sums statistics over the workers
  kReduce,
  kUpdate,
  kCheckWeights,
  kEpochEnd,
  kEvaluate,
  kScore,
  kCheckpoint,
};

// What one rank does now, for whoever watches it. Written by the rank (one relaxed store of some
// nanoseconds, no clock), read by any thread; times are the reader's business.
class alignas(64) Status {
 public:
  struct Moment {
    Phase phase = Phase::kStart;
    int64_t step = 0;
    uint8_t part = 0;  // counts inside a long phase, so that it is seen to move
    bool operator==(const Moment&) const = default;
  };

  void Set(Phase phase, int64_t step, int64_t part = 0) {
    word_.store(uint64_t(step) << 16 | uint64_t(uint8_t(part)) << 8 | uint64_t(phase),
                std::memory_order_relaxed);
  }
  Moment now() const {
    const uint64_t word = word_.load(std::memory_order_relaxed);
    return {Phase(word & 0xff), int64_t(word >> 16), uint8_t(word >> 8)};
  }

 private:
  std::atomic<uint64_t> word_ = 0;
};

// The threads of a rank that a trace shows, and a number that changes.
enum class Track : uint8_t { kCompute, kCommunication, kReturn, kQueue };
constexpr int kTracks = 4;

enum class SpanKind : uint8_t {
  kData,
  kForward,
  kBackward,
  kWait,  // for communication
  kUpdate,
  kEvaluate,
  kCheckpoint,
  kBucket,  // its reduction
  kQueue,   // no span: how many samples lie ready, as the part
};

// Where the spans of one rank go. Each track has one writer at a time.
class SpanSink {
 public:
  virtual ~SpanSink() = default;
  bool on() const { return on_.load(std::memory_order_relaxed); }  // the present step is recorded
  int64_t step() const { return step_.load(std::memory_order_relaxed); }  // the present one
  virtual void BeginStep(int64_t step) = 0;                               // decides it
  // A span of step `step`, which may be over by now. `part`: which bucket, shard; -1: it has no
  // number.
  virtual void Add(Track track, SpanKind kind, double begin_s, double end_s, int64_t step,
                   int part = -1) = 0;

 protected:
  std::atomic<bool> on_ = true;
  std::atomic<int64_t> step_ = 0;
};

// Who looks at a rank; both may be null, and then nothing is told.
struct Observer {
  Status* status = nullptr;
  SpanSink* spans = nullptr;

  void Tell(Phase phase, int64_t step, int64_t part = 0) const {
    if (status) status->Set(phase, step, part);
  }
  SpanSink* tracing() const { return spans && spans->on() ? spans : nullptr; }
};

}  // namespace trireme
