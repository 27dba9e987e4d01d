#pragma once
#include <optional>
#include <string>

#include "base/log.h"
#include "record/options.h"
#include "record/trace.h"
#include "transport/group.h"

namespace trireme {

// What has to be added to this rank's clock to get rank 0's; 0 where they differ by less than can
// be measured. Every member calls it: some messages to and fro with rank 0, one rank after another.
double MeasureClockOffset(Group& group);

// One rank's part in record.trace, which may be off.
class Tracing {
 public:
  Tracing(const RecordOptions& options, Group& group);  // every member calls it

  TraceBuffer* buffer() { return buffer_ ? &*buffer_ : nullptr; }
  void Share();  // every member calls it at the end: rank 0 writes the file
  // After an error, when the group is finished: what this rank has, as a file of its own.
  void Rescue(const Log& log) noexcept;

 private:
  const RecordOptions& options_;
  Group& group_;
  std::optional<TraceBuffer> buffer_;
  double offset_s_ = 0;
};

}  // namespace trireme
