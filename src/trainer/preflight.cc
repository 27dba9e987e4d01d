#include "trainer/preflight.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/cores.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/toml.h"
#include "base/version.h"
#include "data/feed.h"
#include "launch/transports.h"
#include "strategy/step/tags.h"
#include "transport/collective/broadcast.h"

namespace trireme {
namespace {

constexpr size_t kHash = 64;  // hexadecimal digits
using HexHash = std::array<char, kHash>;

HexHash HashOf(const std::string& text) {
  const std::string hex = Sha256Hex(text);
  HexHash hash;
  std::copy_n(hex.begin(), kHash, hash.begin());
  return hash;
}

// What must be equal, each with the word that names it in an error.
struct Words {
  HexHash recipe, data, instructions, frozen;
  std::array<char, 128> build;
};

// It is of this machine; ranks on several devices of one engine train the same.
Recipe WithoutDeviceNumber(Recipe recipe) {
  recipe.trainer.device = FindDevice(recipe.trainer.device).kind->name;
  return recipe;
}

std::string RecipeText(const Job& job) {
  return BoundText(WithoutDeviceNumber(job.recipe), Binds::kRanks);
}

// A few samples as the network sees them: cheap, and one training sample that differs shows in all,
// by the normalisation.
std::string SomeSamples(const Source& source, const Normalizer& normalizer) {
  constexpr int64_t kSome = 32;
  const Feed feed = Feed::ForEvaluation(source, normalizer);
  std::vector<float> inputs(size_t(feed.shape().size()));
  std::string text;
  for (int64_t i = 0; i < std::min(kSome, feed.size()); ++i) {
    const int64_t at = i * feed.size() / std::min(kSome, feed.size());
    int32_t label = 0;
    feed.Fill({.begin = at, .end = at + 1}, inputs.data(), &label);
    text.append(reinterpret_cast<const char*>(inputs.data()), inputs.size() * sizeof(float));
    text += fmt::format(" {}\n", label);
  }
  return text;
}

std::string DataText(const Job& job) {
  std::string text = fmt::format("{} {} {}", job.data.train->size(), job.data.test->size(),
                                 job.data.classes.size());
  for (const std::string& name : job.data.classes) text += "\n" + name;
  text += "\n" + SomeSamples(*job.data.train, job.normalizer) +
          SomeSamples(*job.data.test, job.normalizer);
  if (!job.data.validation) return text;
  return text + fmt::format("{}\n", job.data.validation->size()) +
         SomeSamples(*job.data.validation, job.normalizer);
}

// What the inputs of columns of text stand for: own samples must mean the same by them.
std::string TextsOf(const ColumnCodes& codes) {
  std::string texts;
  for (const ColumnCode& code : codes) {
    for (const std::string& text : code.categories) texts += text + '\n';
    texts += '\n';
  }
  if (texts.size() == codes.size()) return "";
  return fmt::format(", texts {}", Sha256Hex(texts).substr(0, 12));
}

// What the network's number stands for: own samples must be on the same scale.
std::string TargetOf(const Job& job) {
  const auto& target = job.normalizer.target();
  if (!target) return "";
  return fmt::format(", a number with mean {:g} and deviation {:g}", target->mean,
                     target->deviation);
}

// Of the layers that no server hands out: each rank has them from the same file.
std::string FrozenOf(const Job& job) {
  if (job.layout.frozen == 0 || !job.strategy.leases_work()) return "";
  const auto frozen = std::span(job.initial_state).subspan(job.layout.trained());
  Sha256 hash;
  hash.Add(frozen);
  return fmt::format(", frozen layers {}", hash.Hex().substr(0, 12));
}

Words WordsOf(const Job& job, int rank) {
  // Other instructions round otherwise; that matters only where bits are promised.
  std::string target;
  if (job.recipe.trainer.deterministic) {
    BackendNeeds needs = job.NeedsOf(rank);
    needs.threads = 1;
    target = job.make_backend(needs).engine->target();
  }
  Words words = {
      HashOf(RecipeText(job)), HashOf(DataText(job)), HashOf(target), HashOf(FrozenOf(job)), {}};
  const std::string build = BuildText();
  std::copy_n(build.begin(), std::min(build.size(), words.build.size() - 1), words.build.begin());
  return words;
}

// Two recipes of the same program: the keys whose values differ, the first of them.
// "optimizer.lr is 0.5, at rank 0 0.02".
std::string WhereTheyDiffer(const std::string& one, const std::string& other,
                            std::string_view where) {
  constexpr int kNamed = 3;
  constexpr size_t kLongest = 60;
  const std::vector<std::string> lines = Split(one, '\n'), others = Split(other, '\n');
  std::string words, section;
  int count = 0;
  for (size_t i = 0; i < std::min(lines.size(), others.size()); ++i) {
    const std::string& line = lines[i];
    if (line.starts_with('[')) section = line.substr(1, line.find(']') - 1);
    const size_t equals = line.find(" = ");
    const bool same_key = line.substr(0, equals) == others[i].substr(0, equals);
    if (line == others[i] || equals == line.npos || !same_key || ++count > kNamed) continue;
    words += fmt::format("{}{}.{} is {}, {} {}", words.empty() ? "" : "; ", section,
                         line.substr(0, equals), line.substr(equals + 3).substr(0, kLongest), where,
                         others[i].substr(equals + 3).substr(0, kLongest));
  }
  return words;
}

// Every rank calls it; the words of each.
std::vector<std::string> DifferencesFromRank0(Group& group, const std::string& own) {
  using Text = std::array<char, 600>;
  std::vector<std::byte> first(own.size());
  std::memcpy(first.data(), own.data(), own.size());
  BroadcastBytes(group, kTagPreflight, 0, first);
  const std::string other(reinterpret_cast<const char*>(first.data()), first.size());
  const std::string words = WhereTheyDiffer(own, other, "at rank 0");
  Text text{};
  std::copy_n(words.begin(), std::min(words.size(), text.size() - 1), text.begin());
  std::vector<std::string> all;
  for (const Text& each : AllGather(group, kTagPreflight, text)) all.emplace_back(each.data());
  return all;
}

}  // namespace

std::string OtherBuild(const std::vector<std::string>& builds) {
  for (size_t r = 1; r < builds.size(); ++r) {
    if (builds[r] == builds[0]) continue;
    return fmt::format(
        "rank {}'s version of trireme differs from rank 0's: {} and {}; start all ranks with the "
        "same build",
        r, builds[r], builds[0]);
  }
  return "";
}

void CheckAgreement(Group& group, const Job& job) {
  const auto all = AllGather(group, kTagPreflight, WordsOf(job, group.rank()));
  const auto check = [&](int first, const char* differ, const char* need, HexHash Words::*word) {
    for (int r = first + 1; r < group.size(); ++r) {
      if (all[r].*word == all[first].*word) continue;
      throw Error("rank {}'s {} from rank {}'s; {}", r, differ, first, need);
    }
  };
  std::vector<std::string> builds;
  for (const Words& words : all) builds.emplace_back(words.build.data());
  if (const std::string other = OtherBuild(builds); !other.empty()) throw Error("{}", other);
  for (int r = 1; r < group.size(); ++r) {
    if (all[r].recipe == all[0].recipe) continue;
    const std::string where = DifferencesFromRank0(group, RecipeText(job))[size_t(r)];
    throw Error("rank {}'s recipe differs from rank 0's: {}; start all ranks with the same recipe",
                r, where);
  }
  check(0, "data differ", "all ranks of a job need the same", &Words::data);
  check(0, "frozen layers differ", "all ranks need the same file (trainer.init), or run to resume",
        &Words::frozen);
  // Where workers compute on cards, servers do not.
  const bool alike = job.DeviceOf(0).kind == FindDevice(job.recipe.trainer.device).kind;
  check(alike ? 0 : job.strategy.servers, "instruction set differs",
        "--deterministic needs the same on all ranks", &Words::instructions);
}

void ShowRanks(Group& group, const Job& job, const Log& log) {
  const bool server = group.rank() < job.strategy.servers;
  const std::string own =
      fmt::format("{:>5}  {:<20} {:>8}  {:<7} {:<6} {:>7}  {}", group.rank(), HostName(), getpid(),
                  server ? (job.strategy.whole ? "leader" : "server") : "worker",
                  job.DeviceOf(group.rank()).Text(), job.NeedsOf(group.rank()).threads,
                  FormatCpuList(ReadCoreFacts().affinity));
  const auto all = GatherBytes(group, kTagPreflight, 0, std::as_bytes(std::span(own)), 1 << 12);
  if (all.empty()) return;
  log.Info("ranks", "{}:", TransportText(job.recipe.transport, job.strategy.leases_work()));
  log.Info("ranks", " rank  {:<20} {:>8}  {:<7} {:<6} {:>7}  {}", "host", "process", "role",
           "device", "threads", "cores");
  for (const auto& line : all) {
    log.Info("ranks", "{}", std::string(reinterpret_cast<const char*>(line.data()), line.size()));
  }
}

std::string FingerprintOf(const Job& job) {
  const Shape input = job.graph.input();
  return fmt::format("{}\n{}x{}x{} samples, {} classes, {} weights{}{}{}\n{}\n{}", BuildText(),
                     input.height, input.width, input.channels, job.data.classes.size(),
                     job.layout.weights, TextsOf(job.data.codes), TargetOf(job), FrozenOf(job),
                     Sha256Hex(DataText(job)), BoundText(job.recipe, Binds::kJob));
}

namespace {

// A fingerprint's parts, in their order; the last is the rest.
struct Fingerprint {
  std::string version, model, data, recipe;
};

std::optional<Fingerprint> ReadFingerprint(const std::string& text) {
  Fingerprint fingerprint;
  size_t at = 0;
  for (std::string* part : {&fingerprint.version, &fingerprint.model, &fingerprint.data}) {
    const size_t end = text.find('\n', at);
    if (end == text.npos) return std::nullopt;
    *part = text.substr(at, end - at);
    at = end + 1;
  }
  fingerprint.recipe = text.substr(at);
  return fingerprint;
}

}  // namespace

std::string JudgeFingerprint(const std::string& own, const std::string& shown, bool other_data) {
  const Fingerprint mine = ReadFingerprint(own).value();
  const std::optional<Fingerprint> theirs = ReadFingerprint(shown);
  if (!theirs) return "it did not show a client's fingerprint";
  if (theirs->version != mine.version) {
    return fmt::format("its version of trireme differs: {}, the server's is {}",
                       theirs->version.substr(0, 80), mine.version);
  }
  if (theirs->model != mine.model) {
    return fmt::format("its model differs ({}; the server's: {})", theirs->model.substr(0, 100),
                       mine.model);
  }
  if (theirs->recipe != mine.recipe) {
    return "its recipe differs: " + WhereTheyDiffer(theirs->recipe, mine.recipe, "at the server");
  }
  if (theirs->data != mine.data && !other_data) return "its data differ from the server's";
  return "";
}

std::string RunInfoOf(const Job& job) {
  return fmt::format("{} {} {} {}\n{}", job.plan.samples, job.plan.batch, job.plan.shards,
                     job.plan.steps, ToldText(WithoutDeviceNumber(job.recipe)));
}

RunInfo ReadRunInfo(const std::string& text) {
  const size_t line = text.find('\n');
  const std::vector<std::string> words = Split(text.substr(0, line), ' ');
  std::vector<int64_t> numbers;
  for (const std::string& word : words) numbers.push_back(ParseNumber<int64_t>(word).value_or(0));
  const bool good = line != text.npos && numbers.size() == 4 &&
                    std::all_of(numbers.begin(), numbers.end(),
                                [](int64_t n) { return n > 0 && n < int64_t(1) << 50; }) &&
                    numbers[2] < 1 << 20;
  if (!good) throw Error("the server's run info cannot be read");
  return {
      {.samples = numbers[0], .batch = numbers[1], .shards = int(numbers[2]), .steps = numbers[3]},
      text.substr(line + 1)};
}

Job PrepareClient(const RunInfo& run_info, FunctionRef<void(Sections&)> own) {
  constexpr char kWhere[] = "the server's recipe";
  Recipe recipe;
  Sections sections;
  Bind(sections, recipe);
  sections.Load(ParseToml(run_info.recipe, kWhere), kWhere);
  own(sections);
  SettleDevice(recipe, sections.IsGiven("trainer.device"));
  Job job = PrepareJob(recipe, BackendOf(recipe), {.ranks = {0}});
  AdoptPlan(job, run_info.plan);
  return job;
}

}  // namespace trireme
