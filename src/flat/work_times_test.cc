#include "flat/work_times.h"

#include <gtest/gtest.h>

#include <vector>

namespace trireme {
namespace {

class LateState : public EventState {
 public:
  void Wait() override { ADD_FAILURE() << "nobody waits for a measurement"; }
  bool HasFired() override { return at_s_ > 0; }
  double FiredAt() override { return at_s_; }
  void Fire(double at_s) { at_s_ = at_s; }

 private:
  double at_s_ = 0;
};

class Spans : public SpanSink {
 public:
  struct Span {
    double begin_s, end_s;
    int64_t step;
    bool operator==(const Span&) const = default;
  };
  void BeginStep(int64_t step) override { step_ = step; }
  void Add(Track, SpanKind, double begin_s, double end_s, int64_t step, int) override {
    all.push_back({begin_s, end_s, step});
  }
  std::vector<Span> all;
};

TEST(WorkTimes, WhatRanAtOnceCountsAtOnce) {
  WorkTimes times;
  times.Add(Event::Fired(10), Event::Fired(12));
  EXPECT_EQ(times.seconds(), 2);
  times.Add(Event::Fired(20), Event::Fired(21), 8);
  EXPECT_EQ(times.seconds(), 10);
  EXPECT_EQ(times.last_s(), 1);
}

// Also when the next step has begun: the span is that of its own.
TEST(WorkTimes, WhatRunsLateCountsOnceItHasRun) {
  Spans spans;
  WorkTimes times;
  std::vector<std::shared_ptr<LateState>> marks;
  for (int i = 0; i < 4; ++i) marks.push_back(std::make_shared<LateState>());
  times.Add(Event(marks[0]), Event(marks[1]), 1, {.sink = &spans, .step = 7});
  spans.BeginStep(8);
  times.Add(Event(marks[2]), Event(marks[3]), 0, {.sink = &spans, .step = 8});
  marks[0]->Fire(5);
  EXPECT_EQ(times.seconds(), 0);
  EXPECT_TRUE(spans.all.empty());
  marks[1]->Fire(6.5);
  EXPECT_EQ(times.seconds(), 1.5);
  marks[2]->Fire(7);
  marks[3]->Fire(9);
  EXPECT_EQ(times.seconds(), 1.5);  // only traced
  EXPECT_EQ(spans.all, (std::vector<Spans::Span>{{5, 6.5, 7}, {7, 9, 8}}));
}

}  // namespace
}  // namespace trireme
