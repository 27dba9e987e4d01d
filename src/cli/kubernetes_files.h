#pragma once
#include <string>
#include <vector>

#include "record/json.h"

namespace trireme {

// One run as a Job of Kubernetes, a pod for each rank, however often pods are lost.
struct KubernetesJob {
  std::string name;
  int ranks = 1;
  std::string image;
  int cpus_per_rank = 1;
  std::string memory;              // of each rank, with its unit: 16Gi
  std::string claim;               // of the volume at kPodFolder; empty: a folder of each pod
  int grace_s = 120;               // for the last checkpoint
  int backoff_limit = 6;           // failed pods, before all is given up
  int user = 1000;                 // never root
  std::string secret;              // of the run
  std::string run;                 // directory
  std::vector<std::string> words;  // `train ...`
};

constexpr char kPodFolder[] = "/trireme";  // where the run is, and what its paths are relative to

// `name` with what Kubernetes forbids in it replaced or left out, for so many ranks.
std::string KubernetesName(const std::string& name, int ranks);

// Throws UsageError for what Kubernetes would refuse, or would take for something else.
void CheckKubernetesJob(const KubernetesJob& job);

// A Service that gives the pods names, a Secret and a Job.
std::vector<Json> KubernetesObjects(const KubernetesJob& job);
std::string KubernetesText(const KubernetesJob& job);  // for kubectl apply; checks

}  // namespace trireme
