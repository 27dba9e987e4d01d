#pragma once
#include <limits>
#include <vector>

#include "base/observer.h"
#include "flat/queue.h"

namespace trireme {

// Where a stretch of work appears in a trace; without a sink nowhere.
struct SpanLabel {
  SpanSink* sink = nullptr;
  Track track = Track::kCompute;
  SpanKind kind = SpanKind::kForward;
  int64_t step = 0;
  int part = -1;
};

// Seconds that stretches of a queue's work took, each from one mark to a later one. A stretch
// counts once its marks have fired, and nobody waits for that: where work runs late, the last ones
// are missing for a while. One thread at a time.
class WorkTimes {
 public:
  // `stands_for`: stretches that it is measured for; 0: it is only traced.
  void Add(const Event& began, const Event& ended, double stands_for = 1,
           const SpanLabel& label = {}) {
    if (open_.empty() && !began.state() && !ended.state()) {
      return Count(began.FiredAt(), ended.FiredAt(), stands_for, label);
    }
    AddLate(began, ended, stands_for, label);
  }
  double seconds() const {
    if (!open_.empty()) Collect();
    return seconds_;
  }
  double last_s() const { return last_s_; }  // the newest that counts; at first endless

 private:
  struct Open {
    Event began, ended;
    double stands_for;
    SpanLabel label;
  };
  void AddLate(const Event& began, const Event& ended, double stands_for, const SpanLabel& label);
  void Count(double began_s, double ended_s, double stands_for, const SpanLabel& label) const {
    last_s_ = ended_s - began_s;
    seconds_ += stands_for * last_s_;
    if (label.sink) {
      label.sink->Add(label.track, label.kind, began_s, ended_s, label.step, label.part);
    }
  }
  void Collect() const;

  // What has happened is found out when somebody looks.
  mutable std::vector<Open> open_;
  mutable double seconds_ = 0;
  mutable double last_s_ = std::numeric_limits<double>::infinity();
};

}  // namespace trireme
