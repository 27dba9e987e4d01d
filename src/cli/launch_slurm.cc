// Writes the script that a scheduler wants.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "cli/command.h"
#include "cli/launch_words.h"
#include "cli/slurm_script.h"
#include "launch/transports.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr Flag kFlags[] = {
    {"--nodes", "N", "machines (1)"},
    {"--ranks-per-node", "N", "ranks on each node (1)"},
    {"--cpus-per-rank", "N", "processors for each rank (default: what Slurm gives)"},
    {"--partition", "NAME", "partition of the cluster"},
    {"--account", "NAME", "who pays"},
    {"--time", "LIMIT", "time limit as sbatch takes it: 90 (minutes), 12:00:00, 2-00"},
    {"--gres", "LIST", "generic resources of each node, such as gpu:4"},
    {"--sbatch", "OPTION", "another option of sbatch, as in --sbatch=--qos=high; may be repeated"},
    {"--module", "NAME", "`module load` it first; may be repeated, in this order"},
    {"--container", "IMAGE", "run the ranks in this container"},
    {"--container-with", "NAME", "apptainer, singularity or pyxis (default: apptainer)"},
    {"--program", "PATH",
     "trireme's path on the nodes (default: this program's; in a container: trireme)"},
    {"--transport", "NAME", "tcp or mpi (default: tcp)"},
    {"--mpi", "NAME", "how srun starts MPI: pmix or pmi2 (default: pmix)"},
    {"--grace", "SECONDS", "write a checkpoint and stop this long before the time limit (120)"},
    {"--name", "NAME", "name of the job (default: the name of the run's directory)"},
    {"--out", "FILE", "write the script here (default: to the standard output)"},
};

std::string OneOfWords(const Args& args, const char* flag, std::vector<std::string> words) {
  const std::string given = args.Value(flag).value_or(words[0]);
  for (const std::string& word : words) {
    if (given == word) return given;
  }
  throw UsageError("{} must be {}, got {}{}", flag, fmt::join(words, " or "), QuoteToml(given),
                   DidYouMean(given, words));
}

std::string OwnPath() {
  std::error_code error;
  const fs::path path = fs::read_symlink("/proc/self/exe", error);
  if (error) throw UsageError("cannot find this program's path; use --program PATH");
  return path.string();
}

// Those that can join what srun starts.
const TransportKind& TransportOf(const Args& args) {
  std::vector<std::string> names;
  for (const TransportKind& kind : TransportKinds()) {
    if (kind.join) names.push_back(kind.name);
  }
  return *FindTransport(OneOfWords(args, "--transport", names));
}

SlurmJob ReadJob(const Args& args) {
  SlurmJob job;
  job.nodes = args.Number("--nodes", job.nodes);
  job.ranks_per_node = args.Number("--ranks-per-node", job.ranks_per_node);
  job.grace_s = args.Number("--grace", job.grace_s);
  if (args.Has("--cpus-per-rank")) {
    job.cpus_per_rank = args.Number("--cpus-per-rank", 0);
    if (job.cpus_per_rank < 1) throw UsageError("--cpus-per-rank must be at least 1");
  }
  const auto text = [&](const char* flag, std::string& to) {
    const auto given = args.Value(flag);
    if (!given) return;
    if (given->empty()) throw UsageError("{} is empty", flag);
    to = *given;
  };
  text("--partition", job.partition);
  text("--account", job.account);
  text("--time", job.time);
  text("--gres", job.gres);
  text("--container", job.container);
  job.options = args.Values("--sbatch");
  job.modules = args.Values("--module");
  job.mpi_kind = OneOfWords(args, "--mpi", {"pmix", "pmi2"});
  job.mpi = !TransportOf(args).meets;
  if (args.Has("--mpi") && !job.mpi) throw UsageError("--mpi needs --transport mpi");
  if (!job.container.empty()) {
    job.container_with =
        OneOfWords(args, "--container-with", {"apptainer", "singularity", "pyxis"});
  } else if (args.Has("--container-with")) {
    throw UsageError("--container-with needs --container IMAGE");
  }
  const std::vector<std::string> transport = {"--transport", TransportOf(args).name};
  const RunWords words = ReadRunWords(args, transport, !job.container.empty());
  job.run = words.run;
  job.first_words = words.first;
  job.resume_words = words.resume;
  job.name = JobName(job.run);
  text("--name", job.name);
  text("--program", job.program);
  if (job.program.empty()) job.program = job.container.empty() ? OwnPath() : "trireme";
  return job;
}

int Run(const Args& args, Process& process) {
  const std::string script = SlurmScript(ReadJob(args));
  if (WriteLaunchFile(args, process, script)) {
    process.out.Print("submit it with: sbatch {}\n", QuoteShell(*args.Value("--out")));
  }
  return 0;
}

}  // namespace

extern const Command kLaunchSlurm;
const Command kLaunchSlurm = {
    .name = "launch slurm",
    .summary = "write a script for sbatch that trains, checkpoints in time and resumes",
    .usage = "trireme launch slurm [flags] -- train [RECIPE] --out DIR [flags of train]",
    .examples =
        "trireme launch slurm --nodes 2 --ranks-per-node 4 --out job.sh -- train iris --out "
        "runs/a\n"
        "trireme launch slurm --nodes 4 --time 12:00:00 --transport mpi --module openmpi "
        "-- train iris --out runs/b\n"
        "trireme launch slurm --container trireme.sif --sbatch=--qos=high -- train --out runs/c\n",
    .flags = kFlags,
    .places = kTrainPlaces,
    .run = Run,
};

}  // namespace trireme
