#include "cli/slurm_script.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/toml.h"

namespace trireme {
namespace {

constexpr std::string_view kMarks = "_-./:=,+@%";

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kMarks.find(c) != kMarks.npos;
}

// sbatch reads its lines by rules of its own, so that values with blanks or quotes are left out of
// them altogether.
void CheckValue(std::string_view flag, const std::string& value) {
  if (!value.empty() && std::all_of(value.begin(), value.end(), IsPlain)) return;
  throw UsageError("{} must be a word of letters, digits and {}, got {}", flag, kMarks,
                   QuoteToml(value));
}

void CheckAtLeastOne(std::string_view flag, int value, int most) {
  if (value >= 1 && value <= most) return;
  throw UsageError("{} must be between 1 and {}, got {}", flag, most, value);
}

std::string Header(const SlurmJob& job) {
  // Modules are functions of a shell that has read /etc/profile.
  std::string text = job.modules.empty() ? "#!/bin/bash\n" : "#!/bin/bash -l\n";
  text +=
      "# Written by `trireme launch slurm`. Submit it with sbatch; submit it again to resume.\n";
  const auto line = [&](std::string_view option, const auto& value) {
    text += fmt::format("#SBATCH --{}={}\n", option, value);
  };
  line("job-name", job.name);
  line("nodes", job.nodes);
  line("ntasks", job.nodes * job.ranks_per_node);
  line("ntasks-per-node", job.ranks_per_node);
  if (job.cpus_per_rank) line("cpus-per-task", job.cpus_per_rank);
  if (!job.partition.empty()) line("partition", job.partition);
  if (!job.account.empty()) line("account", job.account);
  if (!job.time.empty()) line("time", job.time);
  if (!job.gres.empty()) line("gres", job.gres);
  line("output", job.name + "-%j.out");
  text += "#SBATCH --open-mode=append\n#SBATCH --requeue\n";
  line("signal", fmt::format("B:USR1@{}", job.grace_s));
  for (const std::string& option : job.options) text += fmt::format("#SBATCH {}\n", option);
  return text;
}

// Every rank gets the same words, and rank 0 waits on the first host of the job.
constexpr const char kMeeting[] =
    R"sh(# Where the ranks meet: two jobs on one host have different ports. The secret is new for each
# start and travels in the environment, which only its user can read.
host=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
TRIREME_MEET=$host:$((20000 + SLURM_JOB_ID % 10000))
TRIREME_SECRET=$(od -A n -N 32 -t x1 /dev/urandom | tr -d ' \n')
export TRIREME_MEET TRIREME_SECRET

)sh";

constexpr const char kScriptBegin[] =
    R"sh(newest() { readlink "$run/checkpoints/latest"; }
before=$(newest)

# Slurm sends USR1 some time before the time limit: srun passes it on, the ranks write a checkpoint
# and exit with 143. TERM comes from scancel, also to the ranks: this script must outlive them.
out_of_time='' woken=''
trap 'woken=1 out_of_time=1; kill -USR1 "$step"' USR1
trap 'woken=1' TERM
)sh";

constexpr const char kScriptEnd[] =
    R"sh(step=$!
wait "$step"
code=$?
while [ -n "$woken" ]; do  # a signal ends `wait`, not the step
  woken=''
  wait "$step"
  code=$?
done

if [ "$code" = 143 ] && [ -n "$out_of_time" ]; then
  if [ "$(newest)" = "$before" ]; then
    echo "no step was done within the time limit: not queued again; raise --time" >&2
  else
    echo "out of time at $(newest): queued again" >&2
    scontrol requeue "$SLURM_JOB_ID" && exit 0
  fi
fi
exit "$code"
)sh";

std::string Srun(const SlurmJob& job) {
  std::vector<std::string> words = {"srun", fmt::format("--nodes={}", job.nodes),
                                    fmt::format("--ntasks={}", job.nodes * job.ranks_per_node),
                                    fmt::format("--ntasks-per-node={}", job.ranks_per_node)};
  // Since Slurm 22.05 a step does not inherit it.
  if (job.cpus_per_rank) words.push_back(fmt::format("--cpus-per-task={}", job.cpus_per_rank));
  words.push_back("--mpi=" + (job.mpi ? job.mpi_kind : std::string("none")));
  words.insert(words.end(), {"--export=ALL", "--kill-on-bad-exit=1"});
  if (job.container_with == "pyxis") {
    words.push_back("--container-image=" + job.container);
  } else if (!job.container.empty()) {
    words.insert(words.end(), {job.container_with, "exec", job.container});
  }
  words.push_back(job.program);
  return QuoteShell(words) + " \"${words[@]}\" &\n";
}

}  // namespace

std::string QuoteShell(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), IsPlain)) return std::string(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string QuoteShell(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + QuoteShell(word);
  return text;
}

void CheckSlurmJob(const SlurmJob& job) {
  constexpr int kMost = 1024;  // of transport.ranks
  CheckAtLeastOne("--nodes", job.nodes, kMost);
  CheckAtLeastOne("--ranks-per-node", job.ranks_per_node, kMost);
  CheckAtLeastOne("ranks (--nodes times --ranks-per-node)", job.nodes * job.ranks_per_node, kMost);
  if (job.cpus_per_rank) CheckAtLeastOne("--cpus-per-rank", job.cpus_per_rank, 1 << 16);
  CheckAtLeastOne("--grace", job.grace_s, 65535);  // sixteen bits in Slurm
  CheckValue("--name", job.name);
  if (job.name.find('/') != job.name.npos) {
    throw UsageError("--name is also the name of a file and cannot contain /, got {}",
                     QuoteToml(job.name));
  }
  const auto check = [](const char* flag, const std::string& value) {
    if (!value.empty()) CheckValue(flag, value);
  };
  check("--partition", job.partition);
  check("--account", job.account);
  check("--gres", job.gres);
  check("--time", job.time);
  if (job.time.find_first_not_of("0123456789:-") != job.time.npos) {
    throw UsageError("--time must be as sbatch takes it (minutes, hh:mm:ss or days-hh), got {}",
                     QuoteToml(job.time));
  }
  for (const std::string& option : job.options) {
    CheckValue("--sbatch", option);
    if (!option.starts_with("-")) {
      throw UsageError("--sbatch must be an option of sbatch, such as --qos=high, got {}",
                       QuoteToml(option));
    }
  }
  for (const std::string& module : job.modules) CheckValue("--module", module);
}

std::string SlurmScript(const SlurmJob& job) {
  CheckSlurmJob(job);
  std::string text = Header(job) + "\n";
  for (const std::string& module : job.modules) {
    text += fmt::format("module load {} || exit\n", QuoteShell(module));
  }
  text += fmt::format("run={}\n", QuoteShell(job.run));
  text +=
      fmt::format("if [ -e \"$run/config.toml\" ]; then\n  words=({})\nelse\n  words=({})\nfi\n\n",
                  QuoteShell(job.resume_words), QuoteShell(job.first_words));
  if (!job.mpi) text += kMeeting;
  return text + kScriptBegin + Srun(job) + kScriptEnd;
}

}  // namespace trireme
