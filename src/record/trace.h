#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/observer.h"

namespace trireme {

// The spans of one rank, in memory that is taken once: the newest stay. So that tracing costs
// little however short the steps are, it records every 2^k-th step, k by what the steps before
// took. Add is called by one thread per track, the rest by the rank's own while nobody adds.
class TraceBuffer : public SpanSink {
 public:
  // `bytes`: of the trace file, this rank's share. `now`: what time a step begins.
  explicit TraceBuffer(size_t bytes, double (*now)() = Now);

  void BeginStep(int64_t step) override;
  void Add(Track track, SpanKind kind, double begin_s, double end_s, int64_t step,
           int part) override;
  int64_t every() const { return every_; }

  // For another rank's TracePart. `offset_s`: what this rank's clock lacks to the common one.
  std::vector<std::byte> Serialize(double offset_s) const;

 private:
  friend struct TracePart;
  struct Span {
    double begin_s = 0;
    float seconds = 0;
    int part = -1;
    int64_t step = 0;
    SpanKind kind = SpanKind::kData;
  };
  struct Ring {
    std::unique_ptr<Span[]> spans;
    std::atomic<uint64_t> added = 0;  // in all; the newest `capacity_` are kept
  };
  uint64_t CountAdded() const;

  const size_t capacity_;  // of a track
  double (*const now_)();
  std::array<Ring, kTracks> tracks_;
  int64_t every_ = 1;
  double last_s_ = 0;  // when the last recorded step began
  int64_t last_step_ = -1;
  uint64_t last_added_ = 0;
};

// Writes all ranks' serialized buffers, in the order of ranks, as one file that says what was cut.
// `first_rank`: of the first part. Parts that are damaged are an Error.
void WriteTrace(const std::string& path, std::span<const std::vector<std::byte>> parts,
                int first_rank = 0);

}  // namespace trireme
