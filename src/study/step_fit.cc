#include "study/step_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "launch/transports.h"
#include "report/run_reader.h"
#include "strategy/choice.h"
#include "study/statistics.h"
#include "transport/tcp/rate_limiter.h"

namespace trireme {
namespace {

constexpr double kNoticed = 0.02;  // of a step: a shorter wait for samples says nothing

struct Line {
  double steps = 0, seconds = 0, samples = 0;
  StepTimes times;
};

std::vector<Line> UsefulLines(std::span<const MetricsLine> all) {
  std::vector<Line> lines;
  double before = 0;
  for (const MetricsLine& m : all) {
    const Line line{m.step - before, m.seconds, m.samples_per_second * m.seconds, m.times};
    before = m.step;
    if (line.steps > 0 && line.seconds > 0 && line.samples > 0) lines.push_back(line);
  }
  if (lines.size() > 1) lines.erase(lines.begin());  // warms up
  return lines;
}

template <class Pick>
double UsualStep(const std::vector<Line>& lines, Pick pick) {
  std::vector<double> values;
  for (const Line& line : lines) values.push_back(pick(line) / line.steps);
  return SpreadOf(values).median;
}

// By samples of a worker: through one point in proportion, through several the nearest line that
// is not negative.
StepSeconds FitSeconds(const std::vector<std::pair<double, double>>& points, bool emulated) {
  double n = double(points.size()), x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [samples, seconds] : points) {
    x += samples;
    y += seconds;
    xx += samples * samples;
    xy += samples * seconds;
  }
  const double spread = n * xx - x * x;
  if (emulated) return {y / n, 0};
  if (spread <= 1e-9 * n * xx) return {0, x > 0 ? y / x : 0};
  const double slope = (n * xy - x * y) / spread, start = (y - slope * x) / n;
  if (slope < 0) return {y / n, 0};
  if (start < 0) return {0, xy / xx};
  return {start, slope};
}

void FitComputing(std::span<const StepMeasurement> runs, StepModel& model) {
  std::vector<std::pair<double, double>> forward, backward;
  const StepMeasurement* fewest = &runs[0];
  for (const StepMeasurement& run : runs) {
    if (run.ranks < fewest->ranks) fewest = &run;
    const double samples = std::ceil(run.samples / run.ranks);
    const double data = run.recipe.emulate.step_ms > 0 ? run.times.data : 0;  // a part of it
    forward.emplace_back(samples, run.times.forward + data);
    backward.emplace_back(samples, run.times.backward);
  }
  const bool emulated = runs[0].recipe.emulate.step_ms > 0;
  model.forward = FitSeconds(forward, emulated);
  model.backward = FitSeconds(backward, emulated);
  model.update_s = fewest->times.update + std::max(0.0, fewest->step_s - fewest->times.Total());
  if (emulated) return;
  const double samples = std::ceil(fewest->samples / fewest->ranks);
  const IntOrWord& threads = fewest->recipe.data.threads;
  if (threads.is_word() || threads.number == 0) {
    model.fetch_s_per_sample = fewest->times.data / samples;
  } else if (fewest->times.data > kNoticed * fewest->step_s) {
    model.loader_s_per_sample = fewest->step_s / samples;
  }
}

double Mismatch(const StepModel& model, const StepCluster& cluster,
                std::span<const StepMeasurement> runs) {
  double squares = 0;
  for (const StepMeasurement& run : runs) {
    if (run.ranks < 2) continue;
    const double step = SimulateStep(model, cluster, run.ranks, ChoiceOf(run.recipe)).step_s;
    squares += std::pow(step / run.step_s - 1, 2);
  }
  return squares;
}

// The value in [low, high] with the least mismatch, on a logarithmic scale; `zero`: or 0.
template <class Set>
double Search(double low, double high, bool zero, Set mismatch_at) {
  constexpr int kPoints = 400;
  double best = zero ? 0 : low, least = mismatch_at(best);
  for (int i = 0; i <= kPoints; ++i) {
    const double value = low * std::pow(high / low, double(i) / kPoints);
    const double mismatch = mismatch_at(value);
    if (mismatch < least) {
      least = mismatch;
      best = value;
    }
  }
  return best;
}

bool SharesMemory(const Recipe& recipe) {
  const TransportKind* transport = FindTransport(recipe.transport.name);
  return transport && transport->shares_memory && ChoiceOf(recipe).algorithm == "shared";
}

void FitLink(const StepModel& model, std::span<const StepMeasurement> runs, StepFit& fit) {
  const StepMeasurement* several = nullptr;
  bool sizes_differ = false;
  for (const StepMeasurement& run : runs) {
    if (run.ranks < 2) continue;
    sizes_differ |= several && several->ranks != run.ranks;
    several = &run;
  }
  const Recipe& recipe = several ? several->recipe : runs[0].recipe;
  StepCluster& cluster = fit.cluster;
  LinkSpeed& link = cluster.link.any;
  cluster.shared_memory = several && SharesMemory(recipe);
  const auto mismatch = [&] {
    cluster.link.inner = link;
    return Mismatch(model, cluster, runs);
  };
  const auto at_latency = [&](double seconds) {
    link.latency_s = seconds;
    return mismatch();
  };
  const auto at_byte = [&](double seconds) {
    link.seconds_per_byte = seconds;
    return mismatch();
  };
  if (recipe.transport.throttle > 0) {
    link.seconds_per_byte = 1 / recipe.transport.throttle;
    cluster.burst_s = RateLimiter::kMadeGoodSeconds;
    const double given = recipe.transport.latency_ms * 1e-3;
    link.latency_s = several ? Search(1e-7, 0.1, true, at_latency) : given + kAssumedLatency;
    fit.remarks.push_back(fmt::format("bandwidth {}/s from transport.throttle, latency {} {}",
                                      FormatBytes(recipe.transport.throttle),
                                      FormatSeconds(link.latency_s),
                                      several ? "fitted" : "assumed"));
  } else if (several) {
    link.latency_s = cluster.shared_memory ? kAssumedLatency / 10 : kAssumedLatency;
    const int rounds = sizes_differ ? 8 : 1;  // in turns, until neither moves
    for (int i = 0; i < rounds; ++i) {
      link.seconds_per_byte = Search(1e-12, 1e-5, false, at_byte);
      if (sizes_differ) link.latency_s = Search(1e-7, 0.1, true, at_latency);
    }
    fit.remarks.push_back(
        fmt::format("bandwidth {}/s fitted, latency {} {}", FormatBytes(1 / link.seconds_per_byte),
                    FormatSeconds(link.latency_s), sizes_differ ? "fitted" : "assumed"));
  } else {
    throw UsageError(
        "the speed of the link is unknown; use --link RATE,LATENCY, or add a run with two ranks");
  }
  cluster.link.inner = link;
}

}  // namespace

StepChoice ChoiceOf(const Recipe& recipe) {
  StepChoice choice{recipe.strategy.algorithm, recipe.strategy.bucket_mb * 1e6};
  const TransportKind* transport = FindTransport(recipe.transport.name);
  const bool messages = transport && !transport->shares_memory;
  if (choice.algorithm == "auto") {
    choice.algorithm = !messages ? "shared" : recipe.trainer.deterministic ? "chain" : "ring";
  }
  return choice;
}

StepMeasurement ReadMeasurement(const std::string& run) {
  StepMeasurement measured{.run = run};
  Sections sections;
  Bind(sections, measured.recipe);
  LoadRunRecipe(sections, run);
  const StrategyChoice choice = ResolveStrategy(
      measured.recipe.strategy, {.ranks = measured.recipe.transport.ranks,
                                 .deterministic = measured.recipe.trainer.deterministic});
  if (!choice.inner->algorithm || choice.centre != CentreKind::kNone) {
    throw UsageError("{}: only strategy allreduce is modelled; this run's strategy is {}", run,
                     measured.recipe.strategy.name);
  }
  measured.ranks = measured.recipe.transport.ranks;
  const RunData data = ReadRun(run);
  std::vector<Line> lines = UsefulLines(data.epochs);
  if (lines.empty()) lines = UsefulLines(data.steps);  // it ended within its first epoch
  if (lines.empty()) {
    throw UsageError("{}: no epoch is complete; train one, or set trainer.metrics_steps", run);
  }
  measured.step_s = UsualStep(lines, [](const Line& line) { return line.seconds; });
  measured.samples = UsualStep(lines, [](const Line& line) { return line.samples; });
  StepTimes& times = measured.times;
  times.data = UsualStep(lines, [](const Line& line) { return line.times.data; });
  times.forward = UsualStep(lines, [](const Line& line) { return line.times.forward; });
  times.backward = UsualStep(lines, [](const Line& line) { return line.times.backward; });
  times.communication = UsualStep(lines, [](const Line& line) { return line.times.communication; });
  times.update = UsualStep(lines, [](const Line& line) { return line.times.update; });
  return measured;
}

StepFit FitStep(StepModel model, std::span<const StepMeasurement> runs,
                const std::optional<LinkSpeed>& link) {
  StepFit fit;
  const Recipe& recipe = runs[0].recipe;
  model.batch_per_worker = recipe.trainer.batch_per_worker > 0;
  model.batch = model.batch_per_worker           ? double(recipe.trainer.batch_per_worker)
                : recipe.trainer.batch.is_word() ? model.samples
                                                 : double(recipe.trainer.batch.number);
  FitComputing(runs, model);
  fit.bucket_bytes = ChoiceOf(recipe).bucket_bytes;
  fit.cluster.link.seconds_per_added_byte = kAssumedSecondsPerAddedByte;
  std::vector<std::string> ranks;
  for (const StepMeasurement& run : runs) ranks.push_back(std::to_string(run.ranks));
  fit.remarks.push_back(fmt::format("compute time measured with {} rank{}",
                                    fmt::join(ranks, " and "),
                                    ranks == std::vector<std::string>{"1"} ? "" : "s"));
  if (link) {
    fit.cluster.link.any = fit.cluster.link.inner = *link;
    fit.remarks.push_back(fmt::format("link given: {}/s, {}",
                                      FormatBytes(1 / link->seconds_per_byte),
                                      FormatSeconds(link->latency_s)));
  } else {
    FitLink(model, runs, fit);
  }
  fit.model = std::move(model);
  return fit;
}

}  // namespace trireme
