#include "record/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/error.h"
#include "base/files.h"

namespace trireme {
namespace {

constexpr size_t kLineBytes = 128;      // of a span in the file, at most
constexpr double kSpanCost_s = 100e-9;  // two readings of a clock, measured on x86-64
constexpr double kMostCost = 0.008,
                 kLeastCost = 0.002;  // share of the time that recording may take
constexpr int64_t kMostEvery = 1 << 16;

const char* Name(SpanKind kind) {
  switch (kind) {
    case SpanKind::kData:
      return "data";
    case SpanKind::kForward:
      return "forward";
    case SpanKind::kBackward:
      return "backward";
    case SpanKind::kWait:
      return "agree";
    case SpanKind::kUpdate:
      return "update";
    case SpanKind::kEvaluate:
      return "evaluation";
    case SpanKind::kCheckpoint:
      return "checkpoint";
    case SpanKind::kBucket:
      return "reduce bucket";
    case SpanKind::kQueue:
      return "samples ready";
  }
  return "?";
}

constexpr const char* kTrackNames[kTracks] = {"compute", "communication", "communication back",
                                              "data generator"};

struct Header {
  double offset_s = 0;
  int64_t every = 1;
  std::array<uint64_t, kTracks> added = {}, kept = {};
};

}  // namespace

TraceBuffer::TraceBuffer(size_t bytes, double (*now)())
    : capacity_(std::max<size_t>(64, bytes / kLineBytes / kTracks)), now_(now) {
  for (Ring& track : tracks_) track.spans = std::make_unique_for_overwrite<Span[]>(capacity_);
}

uint64_t TraceBuffer::CountAdded() const {
  uint64_t sum = 0;
  for (const Ring& track : tracks_) sum += track.added.load(std::memory_order_relaxed);
  return sum;
}

// Powers of two: ranks that choose differently still have most recorded steps in common.
void TraceBuffer::BeginStep(int64_t step) {
  const bool on = step % every_ == 0;
  on_.store(on, std::memory_order_relaxed);
  step_.store(step, std::memory_order_relaxed);
  if (!on) return;
  const double now = now_();
  const uint64_t added = CountAdded();
  if (last_step_ >= 0 && now > last_s_) {
    const double share = double(added - last_added_) * kSpanCost_s / (now - last_s_);
    if (share > kMostCost && every_ < kMostEvery) every_ *= 2;
    if (share < kLeastCost && every_ > 1) every_ /= 2;
  }
  last_s_ = now;
  last_step_ = step;
  last_added_ = added;
}

void TraceBuffer::Add(Track track, SpanKind kind, double begin_s, double end_s, int64_t step,
                      int part) {
  Ring& ring = tracks_[size_t(track)];
  const uint64_t at = ring.added.load(std::memory_order_relaxed);
  ring.spans[at % capacity_] = {begin_s, float(end_s - begin_s), part, step, kind};
  ring.added.store(at + 1, std::memory_order_release);
}

struct TracePart {
  using Span = TraceBuffer::Span;
  Header header;
  std::array<std::vector<Span>, kTracks> tracks;

  TracePart(std::span<const std::byte> bytes, int rank) {
    const auto take = [&](void* into, size_t size) {
      if (bytes.size() < size) throw Error("the trace of rank {} ends too early", rank);
      if (size) std::memcpy(into, bytes.data(), size);
      bytes = bytes.subspan(size);
    };
    take(&header, sizeof(header));
    for (int track = 0; track < kTracks; ++track) {
      if (header.kept[track] > bytes.size() / sizeof(Span)) {
        throw Error("the trace of rank {} ends too early", rank);
      }
      tracks[track].resize(header.kept[track]);
      take(tracks[track].data(), header.kept[track] * sizeof(Span));
    }
  }
};

std::vector<std::byte> TraceBuffer::Serialize(double offset_s) const {
  Header header{.offset_s = offset_s, .every = every_};
  size_t spans = 0;
  for (int track = 0; track < kTracks; ++track) {
    header.added[track] = tracks_[track].added.load(std::memory_order_acquire);
    header.kept[track] = std::min<uint64_t>(header.added[track], capacity_);
    spans += header.kept[track];
  }
  std::vector<std::byte> bytes(sizeof(header) + spans * sizeof(Span));
  std::byte* to = bytes.data();
  std::memcpy(to, &header, sizeof(header));
  to += sizeof(header);
  for (int track = 0; track < kTracks; ++track) {
    const uint64_t first = header.added[track] - header.kept[track];
    for (uint64_t i = 0; i < header.kept[track]; ++i, to += sizeof(Span)) {
      std::memcpy(to, &tracks_[track].spans[(first + i) % capacity_], sizeof(Span));
    }
  }
  return bytes;
}

namespace {

class TraceFile {
 public:
  TraceFile(const std::string& path, double zero_s) : place_(path), zero_s_(zero_s) {
    text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  }

  void AddRank(const TracePart& part, int rank) {
    Name("process_name", rank, 0, fmt::format("rank {}", rank));
    for (int track = 0; track < kTracks; ++track) {
      if (part.tracks[track].empty()) continue;
      Name("thread_name", rank, track, kTrackNames[track]);
      for (const auto& span : part.tracks[track]) {
        if (span.kind == SpanKind::kQueue) {
          AddCount(span, rank, part.header.offset_s);
        } else {
          AddSpan(span, rank, track, part.header.offset_s);
        }
      }
      cut_ += part.header.added[track] - part.header.kept[track];
    }
    every_ = std::max(every_, part.header.every);
  }

  void Close() {
    fmt::format_to(std::back_inserter(text_),
                   "\n],\"otherData\":{{\"older_spans_left_out\":{},"
                   "\"recorded_steps\":\"one step in {} at the end\"}}}}\n",
                   cut_, every_);
    Flush();
    place_.Commit();
  }

 private:
  void Name(const char* what, int rank, int track, const std::string& name) {
    Begin();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})", what,
                   rank, track, name);
  }

  void AddCount(const TracePart::Span& span, int rank, double offset_s) {
    Begin();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"name":"{0}","ph":"C","pid":{1},"ts":{2:.3f},"args":{{"samples":{3}}}}})",
                   trireme::Name(span.kind), rank, 1e6 * (span.begin_s + offset_s - zero_s_),
                   span.part);
  }

  void AddSpan(const TracePart::Span& span, int rank, int track, double offset_s) {
    Begin();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"name":"{}","ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},)"
                   R"("args":{{"step":{})",
                   trireme::Name(span.kind), rank, track, 1e6 * (span.begin_s + offset_s - zero_s_),
                   1e6 * double(span.seconds), span.step);
    if (span.part >= 0) fmt::format_to(std::back_inserter(text_), R"(,"part":{})", span.part);
    text_ += "}}";
  }

  void Begin() {
    if (!first_) text_ += ",\n";
    first_ = false;
    if (text_.size() > (1 << 20)) Flush();
  }

  void Flush() {
    place_.file().Write(text_);
    text_.clear();
  }

  Replacement place_;
  const double zero_s_;
  std::string text_;
  bool first_ = true;
  uint64_t cut_ = 0;
  int64_t every_ = 1;
};

}  // namespace

void WriteTrace(const std::string& path, std::span<const std::vector<std::byte>> parts,
                int first_rank) {
  std::vector<TracePart> ranks;
  double zero_s = 1e300;
  for (size_t i = 0; i < parts.size(); ++i) {
    const TracePart& part = ranks.emplace_back(parts[i], first_rank + int(i));
    for (const auto& track : part.tracks) {
      for (const auto& span : track) zero_s = std::min(zero_s, span.begin_s + part.header.offset_s);
    }
  }
  TraceFile file(path, zero_s == 1e300 ? 0 : zero_s);
  for (size_t i = 0; i < ranks.size(); ++i) file.AddRank(ranks[i], first_rank + int(i));
  file.Close();
}

}  // namespace trireme
