#include "trainer/muster.h"

#include <fmt/format.h>
#include <hwy/targets.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/cores.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/version.h"
#include "data/feed.h"
#include "engine/cpu/bf16/unit.h"
#include "trainer/tags.h"
#include "transport/broadcast.h"

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
  HexHash program, recipe, data, instructions;
};

// [transport] and the number of threads may differ between ranks.
std::string RecipeText(const Job& job) {
  Recipe recipe = job.recipe;
  recipe.transport = {};
  recipe.trainer.threads = TrainerOptions{}.threads;
  recipe.trainer.pin = TrainerOptions{}.pin;
  return ConfigText(recipe);
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

Words WordsOf(const Job& job) {
  // Other vectors round otherwise; that matters only where bits are promised.
  const int64_t target =
      job.recipe.trainer.deterministic ? hwy::SupportedTargets() & -hwy::SupportedTargets() : 0;
  const bool bf16 = job.recipe.trainer.deterministic && job.recipe.trainer.precision == "bf16";
  const cpu::MatrixUnit* unit = bf16 ? cpu::FindMatrixUnit() : nullptr;
  return {HashOf(std::string(Version())), HashOf(RecipeText(job)), HashOf(DataText(job)),
          HashOf(fmt::format("{} {}", target, unit ? unit->name : ""))};
}

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "?";
  return name;
}

}  // namespace

void CheckAgreement(Group& group, const Job& job) {
  const auto all = AllGather(group, kTagMuster, WordsOf(job));
  const auto check = [&](const char* what, HexHash Words::*word) {
    for (int r = 1; r < group.size(); ++r) {
      if (all[r].*word == all[0].*word) continue;
      throw Error("rank {} has {} than rank 0; all ranks of a job need the same", r, what);
    }
  };
  check("another version of trireme", &Words::program);
  check("another recipe", &Words::recipe);
  check("other data", &Words::data);
  check("another instruction set, and --deterministic wants equal bits", &Words::instructions);
}

void ShowRanks(Group& group, const Job& job, const Log& log) {
  const bool server = group.rank() < job.servers;
  const std::string own =
      fmt::format("{:>5}  {:<20} {:>8}  {:<7} {:<6} {:>7}  {}", group.rank(), HostName(), getpid(),
                  server ? "server" : "worker", job.recipe.trainer.device, job.threads_per_rank,
                  FormatCpuList(ReadCoreFacts().affinity));
  const auto all = GatherBytes(group, kTagMuster, 0, std::as_bytes(std::span(own)), 1 << 12);
  if (all.empty()) return;
  log.Info("ranks", "{} over {}:", group.size(), job.recipe.transport.name);
  log.Info("ranks", " rank  {:<20} {:>8}  {:<7} {:<6} {:>7}  {}", "host", "process", "role",
           "device", "threads", "cores");
  for (const auto& line : all) {
    log.Info("ranks", "{}", std::string(reinterpret_cast<const char*>(line.data()), line.size()));
  }
}

std::string CardOf(const Job& job) {
  Recipe recipe = job.recipe;
  recipe.data.source = recipe.data.ledger = "";
  recipe.data.threads = DataOptions{}.threads;
  recipe.record = {};
  recipe.emulate = {};
  recipe.trainer.device = TrainerOptions{}.device;
  recipe.trainer.init = "";
  Job same;
  same.recipe = recipe;
  const Shape input = job.graph.input();
  return fmt::format("{}\n{}\n{}x{}x{} samples, {} classes, {} weights\n{}\n", Version(),
                     Sha256Hex(RecipeText(same)), input.height, input.width, input.channels,
                     job.data.classes.size(), job.layout.weights, Sha256Hex(DataText(job)));
}

std::string JudgeCard(const std::string& own, const std::string& shown, bool other_data) {
  constexpr size_t kLines = 5;  // the last is empty
  const std::vector<std::string> mine = Split(own, '\n'), theirs = Split(shown, '\n');
  if (theirs.size() != kLines) return "what it shows is no card of a client";
  if (theirs[0] != mine[0]) {
    return fmt::format("it is version {} of trireme, the server {}", theirs[0].substr(0, 50),
                       mine[0]);
  }
  if (theirs[2] != mine[2]) {
    return fmt::format("its model is another one ({}; the server's: {})", theirs[2].substr(0, 100),
                       mine[2]);
  }
  if (theirs[1] != mine[1]) return "its recipe is another one";
  if (theirs[3] != mine[3] && !other_data) return "its data are other ones";
  return "";
}

std::string NoticeOf(const Job& job) {
  Recipe recipe = job.recipe;
  recipe.transport.secret_file = recipe.transport.hosts = recipe.transport.meet = "";
  recipe.transport.bind = recipe.transport.listen = "";
  return fmt::format("{} {} {} {}\n{}", job.plan.samples, job.plan.batch, job.plan.shards,
                     job.plan.steps, ConfigText(recipe));
}

Notice ReadNotice(const std::string& text) {
  const size_t line = text.find('\n');
  const std::vector<std::string> words = Split(text.substr(0, line), ' ');
  std::vector<int64_t> numbers;
  for (const std::string& word : words) numbers.push_back(ParseNumber<int64_t>(word).value_or(0));
  const bool good = line != text.npos && numbers.size() == 4 &&
                    std::all_of(numbers.begin(), numbers.end(),
                                [](int64_t n) { return n > 0 && n < int64_t(1) << 50; }) &&
                    numbers[2] < 1 << 20;
  if (!good) throw Error("the server's notice cannot be read");
  return {
      {.samples = numbers[0], .batch = numbers[1], .shards = int(numbers[2]), .steps = numbers[3]},
      text.substr(line + 1)};
}

}  // namespace trireme
