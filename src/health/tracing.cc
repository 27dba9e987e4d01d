#include "health/tracing.h"

#include <fmt/format.h>

#include <cmath>

#include "base/clock.h"
#include "strategy/step/tags.h"
#include "transport/collective/broadcast.h"

namespace trireme {

double MeasureClockOffset(Group& group) {
  constexpr int kRounds = 8;
  double shortest_s = 1e9, offset_s = 0, clock = 0;
  const std::span<double> message(&clock, 1);
  const auto out = std::as_bytes(message);
  const auto in = std::as_writable_bytes(message);
  for (int r = 1; r < group.size(); ++r) {
    for (int round = 0; round < kRounds; ++round) {
      if (group.rank() == 0) {
        group.Receive(r, kTagTimes, in).Wait();
        clock = Now();
        group.Send(r, kTagTimes, out).Wait();
      } else if (group.rank() == r) {
        const double began = Now();
        group.Send(0, kTagTimes, out).Wait();
        group.Receive(0, kTagTimes, in).Wait();
        const double ended = Now();
        if (ended - began >= shortest_s) continue;
        shortest_s = ended - began;
        offset_s = clock - (began + ended) / 2;
      }
    }
  }
  return std::abs(offset_s) < shortest_s ? 0 : offset_s;
}

Tracing::Tracing(const RecordOptions& options, Group& group) : options_(options), group_(group) {
  if (options.trace.empty()) return;
  buffer_.emplace(size_t(options.trace_mb) * 1000000 / size_t(group.size()));
  offset_s_ = MeasureClockOffset(group);
}

void Tracing::Share() {
  if (!buffer_) return;
  const auto parts = GatherBytes(group_, kTagTimes, 0, buffer_->Serialize(offset_s_));
  if (group_.rank() == 0) WriteTrace(options_.trace, parts);
}

void Tracing::Rescue(const Log& log) noexcept {
  if (!buffer_) return;
  try {
    const std::string path = fmt::format("{}.rank{}", options_.trace, group_.rank());
    const std::vector<std::byte> parts[] = {buffer_->Serialize(offset_s_)};
    WriteTrace(path, parts, group_.rank());
    log.Info("trace", "rank {}: the trace up to the error is in {}", group_.rank(), path);
  } catch (const std::exception& error) {
    log.Warn("trace", "{}", error.what());
  }
}

}  // namespace trireme
