#include "health/stall.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace trireme {
namespace {

bool TakesAll(Phase phase) {
  return phase == Phase::kBatchNorm || phase == Phase::kReduce || phase == Phase::kCheckWeights ||
         phase == Phase::kEpochEnd || phase == Phase::kScore;
}

std::string Does(const Status::Moment& moment) {
  const int64_t step = moment.step;
  switch (moment.phase) {
    case Phase::kStart:
      return "preparing the first step";
    case Phase::kData:
      return fmt::format("fetching the samples of step {}", step);
    case Phase::kCompute:
      return fmt::format("computing step {}", step);
    case Phase::kBatchNorm:
      return fmt::format("summing the statistics of batch-norm in step {}", step);
    case Phase::kCheckWeights:
      return fmt::format("comparing the weights of step {}", step);
    case Phase::kReduce:
      return fmt::format("in the all-reduce of step {}", step);
    case Phase::kUpdate:
      return fmt::format("updating the weights in step {}", step);
    case Phase::kEpochEnd:
      return fmt::format("gathering times after step {}", step);
    case Phase::kEvaluate:
      return fmt::format("evaluating after step {}", step);
    case Phase::kScore:
      return fmt::format("adding up the evaluation after step {}", step);
    case Phase::kCheckpoint:
      return fmt::format("writing the checkpoint of step {}", step);
  }
  return "?";
}

std::string Call(const Status::Moment& moment) {
  switch (moment.phase) {
    case Phase::kReduce:
      return fmt::format("the all-reduce of step {}", moment.step);
    case Phase::kBatchNorm:
      return fmt::format("the batch-norm of step {}", moment.step);
    case Phase::kCheckWeights:
      return fmt::format("the comparison of weights in step {}", moment.step);
    case Phase::kEpochEnd:
      return fmt::format("the gathering of times after step {}", moment.step);
    default:
      return fmt::format("the sum of the evaluation after step {}", moment.step);
  }
}

auto Key(const Standing& s) { return std::tuple(s.moment.step, s.moment.phase, s.moment.part); }

std::string Ranks(std::span<const int> ranks) {
  return fmt::format("rank{} {}", ranks.size() > 1 ? "s" : "", fmt::join(ranks, ", "));
}

template <class Test>
std::vector<int> Which(std::span<const Standing> all, Test test) {
  std::vector<int> ranks;
  for (int r = 0; r < int(all.size()); ++r) {
    if (test(all[r])) ranks.push_back(r);
  }
  return ranks;
}

}  // namespace

std::vector<int> FindMissing(std::span<const Standing> all) {
  auto missing = Which(all, [](const Standing& s) { return s.silent_s > 0; });
  if (missing.empty())
    missing = Which(all, [](const Standing& s) { return !TakesAll(s.moment.phase); });
  if (!missing.empty()) return missing;
  const auto furthest = std::max_element(
      all.begin(), all.end(), [](const auto& a, const auto& b) { return Key(a) < Key(b); });
  return Which(all, [&](const Standing& s) { return Key(s) < Key(*furthest); });
}

std::vector<std::string> DescribeStall(std::span<const Standing> all) {
  const std::vector<int> missing = FindMissing(all);
  std::vector<std::string> lines;
  for (int r = 0; r < int(all.size()); ++r) {
    const Standing& s = all[r];
    std::string line = fmt::format("rank {} ", r);
    if (s.silent_s > 0) {
      line +=
          fmt::format("has not answered for {:.0f} s; it was last {}", s.silent_s, Does(s.moment));
    } else if (TakesAll(s.moment.phase)) {
      std::vector<int> others = missing;
      std::erase(others, r);
      line += fmt::format("has been waiting for {} in {} for {:.0f} s",
                          others.empty() ? "the others" : Ranks(others), Call(s.moment), s.since_s);
    } else {
      line += fmt::format("has been {} for {:.0f} s", Does(s.moment), s.since_s);
    }
    if (s.unheard_s > kUnheard_s) {
      line +=
          fmt::format(" and has heard nothing from rank {} for {:.0f} s", s.unheard, s.unheard_s);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string BlameStall(std::span<const Standing> all, double stall_s) {
  const std::string key = fmt::format("no progress for {:g} s (trainer.stall_seconds)", stall_s);
  const std::vector<int> missing = FindMissing(all);
  if (missing.empty()) {
    const auto unheard = std::max_element(
        all.begin(), all.end(), [](auto& a, auto& b) { return a.unheard_s < b.unheard_s; });
    if (unheard->unheard_s > kUnheard_s) {
      return fmt::format(
          "{}: all ranks wait in {}, and rank {} has heard nothing from rank {} for {:.0f} s; "
          "probably the link between them",
          key, Call(all[0].moment), unheard - all.begin(), unheard->unheard, unheard->unheard_s);
    }
    return fmt::format("{}: all ranks wait in {}", key, Call(all[0].moment));
  }
  const Standing& first = all[missing[0]];
  if (first.silent_s > 0) {
    return fmt::format("{}: {} {} not answered", key, Ranks(missing),
                       missing.size() > 1 ? "have" : "has");
  }
  if (missing.size() == all.size()) {
    return fmt::format("{}: rank {} is {}", key, missing[0], Does(first.moment));
  }
  const auto waiting = std::find_if(all.begin(), all.end(),
                                    [](const Standing& s) { return TakesAll(s.moment.phase); });
  return fmt::format("{}: {} never reached {}; rank {} has been {} for {:.0f} s", key,
                     Ranks(missing), Call(waiting->moment), missing[0], Does(first.moment),
                     first.since_s);
}

}  // namespace trireme
