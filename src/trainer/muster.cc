#include "trainer/muster.h"

#include <fmt/format.h>
#include <hwy/targets.h>
#include <unistd.h>

#include <array>

#include "base/error.h"
#include "base/sha256.h"
#include "base/version.h"
#include "trainer/tags.h"
#include "transport/broadcast.h"

namespace trireme {
namespace {

constexpr size_t kHash = 64;  // hexadecimal digits
using Hash = std::array<char, kHash>;

Hash HashOf(const std::string& text) {
  const std::string hex = Sha256Hex(text);
  Hash hash;
  std::copy_n(hex.begin(), kHash, hash.begin());
  return hash;
}

// What must be equal, each with the word that names it in an error.
struct Words {
  Hash program, recipe, data, instructions;
};

// [transport] and the number of threads may differ between ranks.
std::string RecipeText(const Job& job) {
  Recipe recipe = job.recipe;
  recipe.transport = {};
  recipe.trainer.threads = TrainerOptions{}.threads;
  return ConfigText(recipe);
}

std::string DataText(const Job& job) {
  std::string text = fmt::format("{} {} {}", job.data.train->size(), job.data.test->size(),
                                 job.data.classes.size());
  for (const std::string& name : job.data.classes) text += "\n" + name;
  return text;
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
  const auto check = [&](const char* what, Hash Words::*word) {
    for (int r = 1; r < group.size(); ++r) {
      if (all[r].*word == all[0].*word) continue;
      throw Error("rank {} has {} than rank 0; all ranks of a job need the same", r, what);
    }
  };
  check("another version of trireme", &Words::program);
  check("another recipe", &Words::recipe);
  check("other data (number of samples or classes)", &Words::data);
  check("another instruction set, and --deterministic wants equal bits", &Words::instructions);
}

void ShowRanks(Group& group, const Job& job, const Log& log) {
  const bool server = group.rank() < job.servers;
  const std::string own =
      fmt::format("{:>5}  {:<20} {:>8}  {:<7} {:<6} {:>7}", group.rank(), HostName(), getpid(),
                  server ? "server" : "worker", job.recipe.trainer.device, job.threads_per_rank);
  const auto all = GatherBytes(group, kTagMuster, 0, std::as_bytes(std::span(own)), 1 << 12);
  if (all.empty()) return;
  log.Info("ranks", "{} over {}:", group.size(), job.recipe.transport.name);
  log.Info("ranks", " rank  {:<20} {:>8}  {:<7} {:<6} {:>7}", "host", "process", "role", "device",
           "threads");
  for (const auto& line : all) {
    log.Info("ranks", "{}", std::string(reinterpret_cast<const char*>(line.data()), line.size()));
  }
}

}  // namespace trireme
