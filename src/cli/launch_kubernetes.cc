// Writes what kubectl wants.
#include <fmt/format.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "cli/kubernetes_files.h"
#include "cli/launch_words.h"
#include "transport/tcp/hmac.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    {"--ranks", "N", "ranks, each in a pod of its own"},
    {"--image", "IMAGE", "image with trireme on its PATH, with a tag: HOST/NAME:TAG"},
    {"--cpus-per-rank", "N", "processors for each rank"},
    {"--memory", "SIZE", "memory for each rank, with its unit: 16Gi"},
    {"--claim", "NAME", "PersistentVolumeClaim that all pods mount at /trireme: data and the run"},
    {"--grace", "SECONDS", "time for the last checkpoint when a pod is stopped (120)"},
    {"--backoff-limit", "N", "failed pods after which Kubernetes gives up (6)"},
    {"--user", "UID", "who the ranks run as, user and group (1000)"},
    {"--name", "NAME", "name of the job (default: the name of the run's directory)"},
    {"--out", "FILE", "write the file here (default: to the standard output)"},
};

std::string NewSecret() {
  unsigned char bytes[32];
  FillRandom(bytes);
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

KubernetesJob ReadJob(const Args& args) {
  for (const char* flag : {"--ranks", "--image", "--cpus-per-rank", "--memory"}) {
    if (!args.Has(flag)) throw UsageError("{} is needed", flag);
  }
  KubernetesJob job;
  job.ranks = args.Number("--ranks", 0);
  job.cpus_per_rank = args.Number("--cpus-per-rank", 0);
  job.grace_s = args.Number("--grace", job.grace_s);
  job.backoff_limit = args.Number("--backoff-limit", job.backoff_limit);
  job.user = args.Number("--user", job.user);
  job.image = *args.Value("--image");
  job.memory = *args.Value("--memory");
  if (const auto claim = args.Value("--claim")) {
    if (claim->empty()) throw UsageError("--claim is empty");
    job.claim = *claim;
  }
  job.words = args.Many("COMMAND");
  job.run = ReadRunWords(args, {}, true).run;
  job.name = args.Value("--name").value_or(KubernetesName(JobName(job.run), job.ranks));
  job.secret = NewSecret();
  return job;
}

int Run(const Args& args, Process& process) {
  const KubernetesJob job = ReadJob(args);
  const std::string text = KubernetesText(job);
  umask(S_IRWXG | S_IRWXO);  // it holds the secret
  const bool in_file = WriteLaunchFile(args, process, text);
  if (job.claim.empty()) {
    Log(process.log)
        .Warn("launch", "without --claim the run is lost with rank 0's pod, and so is its result");
  }
  if (in_file) {
    const std::string words[] = {*args.Value("--out")};
    process.out.Print("start it with: kubectl apply -f {}\n", ShellLine(words));
  }
  return 0;
}

}  // namespace

extern const Command kLaunchKubernetes;
const Command kLaunchKubernetes = {
    .name = "launch kubernetes",
    .summary = "write a job for kubectl that trains, checkpoints in time and resumes",
    .usage =
        "trireme launch kubernetes --ranks N --image IMAGE --cpus-per-rank N --memory SIZE [flags] "
        "-- train [RECIPE] --out DIR [flags of train]",
    .examples =
        "trireme launch kubernetes --ranks 4 --image registry.example/trireme:0.5 --cpus-per-rank "
        "8 --memory 16Gi --claim training --out job.yaml -- train fashion-cnn --out runs/a\n",
    .flags = kFlags,
    .places = kTrainPlaces,
    .run = Run,
};

}  // namespace trireme
