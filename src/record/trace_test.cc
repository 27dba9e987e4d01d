#include "record/trace.h"

#include <gtest/gtest.h>

#include <map>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "record/json.h"

namespace trireme {
namespace {

Json Written(std::span<const std::vector<std::byte>> parts, size_t* bytes = nullptr) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/trace.json";
  WriteTrace(path, parts);
  const std::string text = ReadFile(path);
  if (bytes) *bytes = text.size();
  return ParseJson(text, path);
}

TEST(Trace, RanksLieOnOneClock) {
  TraceBuffer a(1 << 16), b(1 << 16);
  a.BeginStep(7);
  a.BeginStep(8);  // where work runs late, a span comes when the next step has begun
  a.Add(Track::kCompute, SpanKind::kForward, 10.0, 10.5, 7, -1);
  b.BeginStep(7);
  b.Add(Track::kCommunication, SpanKind::kBucket, 110.25, 110.5, 7, 3);  // its clock is 100 s ahead
  const std::vector<std::vector<std::byte>> parts = {a.Serialize(0), b.Serialize(-100)};
  std::map<std::string, Json> spans;
  std::map<int64_t, std::string> processes;
  const Json json = Written(parts);
  for (const Json& event : json.At("traceEvents").Items()) {
    if (event.At("ph").AsString() == "X") spans.emplace(event.At("name").AsString(), event);
    if (event.At("name").AsString() == "process_name") {
      processes[event.At("pid").AsInt()] = event.At("args").At("name").AsString();
    }
  }
  EXPECT_EQ(processes, (std::map<int64_t, std::string>{{0, "rank 0"}, {1, "rank 1"}}));
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans.at("forward").At("ts").AsDouble(), 0);
  EXPECT_EQ(spans.at("forward").At("args").At("step").AsInt(), 7);
  EXPECT_NEAR(spans.at("forward").At("dur").AsDouble(), 5e5, 1);
  EXPECT_NEAR(spans.at("reduce bucket").At("ts").AsDouble(), 2.5e5, 1);
  EXPECT_EQ(spans.at("reduce bucket").At("pid").AsInt(), 1);
  EXPECT_EQ(spans.at("reduce bucket").At("args").At("step").AsInt(), 7);
  EXPECT_EQ(spans.at("reduce bucket").At("args").At("part").AsInt(), 3);
}

TEST(Trace, AQueueIsACounter) {
  TraceBuffer buffer(1 << 16);
  buffer.BeginStep(0);
  buffer.Add(Track::kQueue, SpanKind::kQueue, 10.0, 10.0, 0, 3);
  buffer.Add(Track::kQueue, SpanKind::kQueue, 10.5, 10.5, 0, 2);
  const std::vector<std::vector<std::byte>> parts = {buffer.Serialize(0)};
  const Json json = Written(parts);
  std::vector<std::pair<double, int64_t>> counted;
  for (const Json& event : json.At("traceEvents").Items()) {
    if (event.At("ph").AsString() != "C") continue;
    EXPECT_EQ(event.At("name").AsString(), "samples ready");
    counted.emplace_back(event.At("ts").AsDouble(), event.At("args").At("samples").AsInt());
  }
  EXPECT_EQ(counted, (std::vector<std::pair<double, int64_t>>{{0, 3}, {5e5, 2}}));
}

TEST(Trace, StaysWithinItsSizeKeepsTheNewestAndSaysWhatIsCut) {
  constexpr size_t kBytes = 100000;
  TraceBuffer buffer(kBytes);
  constexpr int kSpans = 10000;
  for (int i = 0; i < kSpans; ++i) {
    for (const Track track : {Track::kCompute, Track::kCommunication, Track::kReturn}) {
      buffer.Add(track, SpanKind::kBucket, 1e6 + i, 1e6 + i + 0.5, 0, i);
    }
  }
  size_t bytes = 0;
  const std::vector<std::vector<std::byte>> parts = {buffer.Serialize(0)};
  const Json json = Written(parts, &bytes);
  EXPECT_LE(bytes, kBytes + 1000);
  EXPECT_GT(bytes, kBytes / 2);
  const auto& events = json.At("traceEvents").Items();
  EXPECT_EQ(events.back().At("args").At("part").AsInt(), kSpans - 1);
  const auto spans =
      int64_t(events.size()) - 1 - 3;  // without the names of the rank and its tracks
  EXPECT_EQ(json.At("otherData").At("older_spans_left_out").AsInt(), 3 * kSpans - spans);
}

double pretended_s = 0;

TEST(Trace, ShortStepsAreRecordedSeldomAndLongOnesAlways) {
  TraceBuffer buffer(1 << 20, [] { return pretended_s; });
  int64_t step = 0;
  const auto run = [&](int64_t steps, double seconds) {
    int64_t recorded = 0;
    for (const int64_t end = step + steps; step < end; ++step) {
      buffer.BeginStep(step);
      if (buffer.on()) {
        ++recorded;
        for (int i = 0; i < 5; ++i) buffer.Add(Track::kCompute, SpanKind::kData, 0, 0, step, i);
      }
      pretended_s += seconds;
    }
    return recorded;
  };
  const int64_t of_short = run(100000, 2e-6);
  EXPECT_LT(of_short, 6000);
  EXPECT_GT(of_short, 200);
  EXPECT_GE(buffer.every(), 16);
  run(200, 2e-3);
  EXPECT_EQ(buffer.every(), 1);
}

TEST(Trace, NothingAndDamage) {
  TraceBuffer empty(1);
  const std::vector<std::vector<std::byte>> one = {empty.Serialize(0)};
  EXPECT_EQ(Written(one).At("traceEvents").Items().size(), 1u);
  empty.Add(Track::kCompute, SpanKind::kData, 0, 1, 0, 0);
  std::vector<std::byte> bytes = empty.Serialize(0);
  bytes.pop_back();
  const std::vector<std::vector<std::byte>> damaged = {bytes};
  EXPECT_THROW(Written(damaged), Error);
}

}  // namespace
}  // namespace trireme
