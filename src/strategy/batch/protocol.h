#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "flat/layout.h"
#include "strategy/server/partition.h"
#include "strategy/server/protocol.h"
#include "transport/message.h"

namespace trireme {

// The words of a minimisation over several ranks. Rank 0, the leader, says what to do; the others,
// the workers, hold a stretch of every vector each and compute portions. Doubles travel as bits.
enum class BatchWord {
  // From the leader. Numbers of vectors, and a factor.
  kDot,       // x, y; answered by kValue
  kScale,     // x, a
  kAxpy,      // x, y, a
  kCopy,      // from, to
  kPut,       // vector; the stretch
  kGet,       // vector; answered by kStretch
  kGradient,  // round, point, gradient: begins to compute; answered by kReport's and kDone
  kNext,      // round, whether the part counts, a portion or -1, whether few are left
  kOver,      // round, parts that count: all portions are there
  kShow,      // round, vector; statistics. Answered by kShown
  kMeet,      // what
  kEnd,       // signal
  // From a worker to the leader.
  kValue,
  kReport,  // round, signal, portions held back; of the part: samples, loss, correct, portions;
            // its statistics
  kShown,   // no number
  kDone,    // round, penalty: all parts are in this stretch of the gradient
  // From a worker to any rank.
  kStretch,  // round, worker; of a vector
  kPart,     // round; its sum in the receiver's stretch
};

// Numbers of a report before those of its portions.
constexpr size_t kReportInts = 6;

inline Message Say(BatchWord word, std::vector<int64_t> ints = {}, std::vector<float> body = {}) {
  return {.kind = int(word), .ints = std::move(ints), .body = std::move(body)};
}

// What worker w of n holds of every vector.
inline Range StretchOf(const Layout& layout, int worker, int workers) {
  return PartitionOf(layout.weights, worker, workers);
}

}  // namespace trireme
