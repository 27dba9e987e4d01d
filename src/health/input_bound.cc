#include "health/input_bound.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace trireme {
namespace {

constexpr double kInputShare = 0.05;
// Of each request: what is shorter is copying and waking, which more threads do not shorten.
constexpr double kLeastWait_s = 2e-4;
// That are advised: more than the cores help where fetching waits for a disk or a network. Time in
// which a thread waits for a core looks the same, so not many more.
int MostThreads(const InputLoad& load) { return std::max(8, 2 * load.cores); }
constexpr double kWorthIt = 1.15;  // times as fast, else it is not said
constexpr double kAsGood = 1.02;   // fewer threads do, if they come so close
// Of computing's time, that fetching may take where computing shall be the bound: both vary from
// step to step, and each waits for the other if they take equally long.
constexpr double kRoom = 0.8;

struct FetchStage {
  const char* name;
  const char* verb;
  double seconds;
};

FetchStage LongestStage(const LoaderRecord& loader) {
  FetchStage longest{"decode", "decoding", loader.decode};
  if (loader.read > longest.seconds) longest = {"read", "reading", loader.read};
  if (loader.resize > longest.seconds) longest = {"resize", "resizing", loader.resize};
  return longest;
}

int BestThreads(const InputLoad& load) {
  const int most = MostThreads(load);
  double best = load.seconds;
  for (int n = 1; n <= most; ++n) {
    best = std::min(best, PredictSeconds(load, n, load.loader));
  }
  const double compute = load.seconds - load.waited_s;
  const bool computing_bounds = best <= kAsGood * compute;
  const auto enough = [&](int n) {
    return PredictSeconds(load, n, load.loader) <= kAsGood * best &&
           (!computing_bounds || load.loader.Fetching() / n <= kRoom * compute);
  };
  int n = 1;
  while (n < most && !enough(n)) ++n;
  return n;
}

// The same pictures decoded once and for all, an eighth larger than they are shown.
LoaderRecord DecodedOnce(const LoaderRecord& loader) {
  LoaderRecord packed = loader;
  packed.decode = 0;
  packed.cpu *= packed.Fetching() / loader.Fetching();
  return packed;
}

std::string StepSeconds(double seconds) {
  return seconds < 1 ? fmt::format("{:.3g} ms", 1e3 * seconds) : fmt::format("{:.3g} s", seconds);
}

std::string AdviceText(const InputLoad& load, const InputRecord& found, const FetchStage& stage) {
  const double steps = double(load.steps);
  std::string text;
  if (found.threads != load.loader.threads) {
    text += fmt::format("; data.threads = {} instead of {}: {} a step, {:.1f} times as fast",
                        found.threads, load.loader.threads, StepSeconds(found.step_seconds_threads),
                        found.step_seconds / found.step_seconds_threads);
  } else if (found.step_seconds_threads < found.step_seconds) {  // data.threads = auto added some
    text += fmt::format("; with the present {}: {} a step", Counted(found.threads, "thread"),
                        StepSeconds(found.step_seconds_threads));
  }
  if (!load.picture_size) {
    if (text.empty()) text = "; more threads (data.threads) would not help: the cores are busy";
    return text;
  }
  const LoaderRecord packed = DecodedOnce(load.loader);
  const int threads = std::max(found.threads, 1);
  const double seconds = PredictSeconds(load, threads, packed) / steps;
  const double before = std::min(found.step_seconds, found.step_seconds_threads);
  if (before / seconds > kWorthIt) {
    text +=
        fmt::format("; images decoded once (trireme data pack --size {}): {} a step, {:.1f} ",
                    load.picture_size * 8 / 7, StepSeconds(seconds), found.step_seconds / seconds);
    text += "times as fast";
  } else if (stage.name == std::string("read")) {
    text += "; use one file instead of many (trireme data pack) or a faster disk";
  } else if (text.empty()) {
    text = "; use smaller images (data.size, trireme data pack --size) or more cores";
  }
  return text;
}

}  // namespace

void InputLoad::Add(const InputLoad& more) {
  LoaderRecord sum = more.loader;
  sum.requests += loader.requests;
  sum.read += loader.read;
  sum.decode += loader.decode;
  sum.resize += loader.resize;
  sum.cpu += loader.cpu;
  const InputLoad before = *this;
  *this = more;
  seconds += before.seconds;
  waited_s += before.waited_s;
  steps += before.steps;
  loader = sum;
}

double PredictSeconds(const InputLoad& load, int threads, const LoaderRecord& work) {
  const double compute = load.seconds - load.waited_s;
  if (threads == 0) return compute + work.Fetching();
  // Computing cannot have had more of the cores than fetching left.
  const double cores = load.cores;
  const double computing = std::min(compute * load.compute_threads,
                                    std::max(0.0, cores * load.seconds - load.loader.cpu));
  return std::max({compute, work.Fetching() / threads, (computing + work.cpu) / cores});
}

std::optional<InputRecord> FindInputBound(const InputLoad& load) {
  const LoaderRecord& loader = load.loader;
  if (!(load.waited_s > kInputShare * load.seconds) || loader.requests == 0 || load.steps <= 0 ||
      load.waited_s < kLeastWait_s * double(loader.requests) || !(loader.Fetching() > 0)) {
    return {};
  }
  const double steps = double(load.steps);
  const FetchStage stage = LongestStage(loader);
  InputRecord found{.share = load.waited_s / load.seconds,
                    .stage = stage.name,
                    .step_seconds = load.seconds / steps,
                    .step_seconds_without = (load.seconds - load.waited_s) / steps,
                    .threads = BestThreads(load)};
  const double predicted = PredictSeconds(load, found.threads, loader);
  found.step_seconds_threads = predicted / steps;
  if (load.seconds / predicted < kWorthIt) {
    found.threads = loader.threads;
    found.step_seconds_threads = found.step_seconds;
  }
  found.text = fmt::format(
      "input bound: {:.0f} % of each step's {} is spent waiting for samples (without waiting, a "
      "step takes {}); {} is {:.0f} % of fetching them{}",
      100 * found.share, StepSeconds(found.step_seconds), StepSeconds(found.step_seconds_without),
      stage.verb, 100 * stage.seconds / loader.Fetching(), AdviceText(load, found, stage));
  return found;
}

}  // namespace trireme
