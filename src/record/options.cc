#include "record/options.h"

namespace trireme {

void Describe(OptionTable<RecordOptions>& t) {
  using enum Binds;
  t.Add("trace", &RecordOptions::trace, Any(), kRanks,
        "file for a Chrome trace of all ranks on one clock (chrome://tracing, Perfetto); empty: "
        "none");
  t.Add("trace_mb", &RecordOptions::trace_mb, Between(1, 4096), kRanks,
        "largest size of the trace in megabytes; the oldest spans that do not fit are left out");
  t.Add("tensorboard", &RecordOptions::tensorboard, Any(), kRanks,
        "also write the metrics for TensorBoard, into RUN/tensorboard");
}

}  // namespace trireme
