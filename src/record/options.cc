#include "record/options.h"

namespace trireme {

void Describe(OptionTable<RecordOptions>& t) {
  t.Add("trace", &RecordOptions::trace, Any(),
        "file for a Chrome trace of all ranks on one clock (chrome://tracing, Perfetto); empty: "
        "none");
  t.Add("trace_mb", &RecordOptions::trace_mb, Between(1, 4096),
        "megabytes of the trace at most; what is older than fits is left out");
  t.Add("tensorboard", &RecordOptions::tensorboard, Any(),
        "write the metrics for TensorBoard, too: RUN/tensorboard");
}

}  // namespace trireme
