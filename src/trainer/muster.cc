#include "trainer/muster.h"

#include <fmt/format.h>
#include <hwy/targets.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/cores.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/version.h"
#include "data/feed.h"
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
  return text + "\n" + SomeSamples(*job.data.train, job.normalizer) +
         SomeSamples(*job.data.test, job.normalizer);
}

Words WordsOf(const Job& job) {
  // Other vectors round otherwise; that matters only where bits are promised.
  const int64_t target =
      job.recipe.trainer.deterministic ? hwy::SupportedTargets() & -hwy::SupportedTargets() : 0;
  return {HashOf(std::string(Version())), HashOf(RecipeText(job)), HashOf(DataText(job)),
          HashOf(fmt::format("{}", target))};
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

}  // namespace trireme
