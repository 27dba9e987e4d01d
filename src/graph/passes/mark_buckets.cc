#include <algorithm>

#include "base/assert.h"
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "graph/program.h"

namespace trireme {
namespace {

bool Overlap(const Range& range, const Bucket& bucket) {
  return range.begin < bucket.range.end() && range.end() > bucket.range.begin;
}

}  // namespace

std::vector<Range> WrittenGradients(const Instruction& instruction) {
  if (instruction.op->parts.size() == 0) {
    return instruction.op->writes_gradients ? instruction.parameters : std::vector<Range>{};
  }
  std::vector<Range> all;
  for (const Instruction& part : instruction.parts) {
    const std::vector<Range> written = WrittenGradients(part);
    all.insert(all.end(), written.begin(), written.end());
  }
  return all;
}

namespace passes {

// Buckets are announced in order. A fused operation may finish several at once, or one before
// another that comes first in the layout: that one is announced later, with the other.
void MarkBuckets(Program& program) {
  std::vector<std::vector<Range>> written;
  for (const Instruction& i : program.instructions) written.push_back(WrittenGradients(i));
  int last = -1;  // the instruction that finishes the last of all buckets so far
  for (const Bucket& bucket : program.buckets) {
    if (bucket.range.begin >= program.layout.weights) continue;
    int own = -1;
    for (size_t i = 0; i < written.size(); ++i) {
      const auto overlaps = [&](const Range& range) { return Overlap(range, bucket); };
      if (std::ranges::any_of(written[i], overlaps)) own = int(i);
    }
    TRIREME_ASSERT(own >= 0);  // every layer gets gradients
    last = std::max(last, own);
    program.instructions[size_t(last)].finishes.push_back(bucket.index);
  }
}

void MarkFirstReads(Program& program) {
  for (const Bucket& bucket : program.buckets) {
    const auto overlaps = [&](const Range& range) {
      return !program.layout.IsFrozen(range) && Overlap(range, bucket);
    };
    const auto reader = std::ranges::find_if(program.instructions, [&](const Instruction& i) {
      return std::ranges::any_of(i.parameters, overlaps) ||
             std::ranges::any_of(i.statistics, overlaps);
    });
    if (reader == program.instructions.end()) continue;
    TRIREME_ASSERT(!reader->backward);  // gradients are of what forward has read
    reader->first_reads.push_back(bucket.index);
  }
}

}  // namespace passes
}  // namespace trireme
