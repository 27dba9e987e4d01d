#include "transport/launched.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace trireme {
namespace {

constexpr size_t kMostHosts = 1 << 16;  // more in one list is a mistake, not a machine

class Environment {
 public:
  explicit Environment(FunctionRef<const char*(const char*)> variable) : variable_(variable) {}

  bool Has(const char* name) const { return variable_(name) != nullptr; }
  std::string Text(const char* name) const {
    const char* text = variable_(name);
    return text != nullptr ? text : "";
  }
  std::optional<int> Number(const char* name, int least) const {
    if (!Has(name)) return std::nullopt;
    const auto number = ParseNumber<int>(Text(name));
    if (number && *number >= least) return number;
    throw Error("{} must be a number of at least {}, got {}", name, least, QuoteValue(Text(name)));
  }

  // Rank and size, of which the second may not be announced.
  void Place(const char* rank, const char* size, Launched& launched) const {
    if (!Has(rank)) throw Error("{} is set, but {} is not", size, rank);
    launched.rank = *Number(rank, 0);
    launched.size = Number(size, 1);
    CheckBelow(rank, launched.rank, size, launched.size);
  }
  void LocalPlace(const char* rank, const char* size, Launched& launched) const {
    launched.local_rank = Number(rank, 0);
    launched.local_size = Number(size, 1);
    CheckBelow(rank, launched.local_rank.value_or(0), size, launched.local_size);
  }

 private:
  static std::string QuoteValue(const std::string& text) {
    return fmt::format("\"{}\"", text.substr(0, 80));
  }
  static void CheckBelow(const char* rank, int value, const char* size, std::optional<int> limit) {
    if (limit && value >= *limit) {
      throw Error("{} must be below {}, got {} of {}", rank, size, value, *limit);
    }
  }

  FunctionRef<const char*(const char*)> variable_;
};

std::optional<Launched> FromTrireme(const Environment& env) {
  if (!env.Has("TRIREME_RANK") && !env.Has("TRIREME_WORLD")) return std::nullopt;
  Launched launched{.launcher = "trireme"};
  if (!env.Has("TRIREME_WORLD")) throw Error("TRIREME_RANK is set, but TRIREME_WORLD is not");
  // Kubernetes numbers the pods of a job; alone, the number may mean anything.
  const bool pod = !env.Has("TRIREME_RANK") && env.Has("JOB_COMPLETION_INDEX");
  if (pod) launched.launcher = "Kubernetes";
  env.Place(pod ? "JOB_COMPLETION_INDEX" : "TRIREME_RANK", "TRIREME_WORLD", launched);
  return launched;
}

// Also what operators of clusters set for PyTorch (PyTorchJob, TrainJob). RANK alone is a word that
// shells may have by chance. Where an agent of torchrun listens on MASTER_PORT itself, the ranks
// take its neighbour.
std::optional<Launched> FromTorchrun(const Environment& env) {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR"}) {
    if (env.Text(name).empty()) return std::nullopt;
  }
  Launched launched{.launcher = "torchrun"};
  env.Place("RANK", "WORLD_SIZE", launched);
  if (launched.alone()) return std::nullopt;
  env.LocalPlace("LOCAL_RANK", "LOCAL_WORLD_SIZE", launched);
  constexpr int kLastPort = 65535;
  const bool held = env.Has("TORCHELASTIC_USE_AGENT_STORE")
                        ? env.Text("TORCHELASTIC_USE_AGENT_STORE") == "True"
                        : env.Has("TORCHELASTIC_RUN_ID");
  const int port = env.Number("MASTER_PORT", 1).value_or(held ? kPort - 1 : kPort);
  if (port > kLastPort) throw Error("MASTER_PORT must be at most {}, got {}", kLastPort, port);
  launched.port = !held ? port : port < kLastPort ? port + 1 : port - 1;
  launched.hosts = {env.Text("MASTER_ADDR")};
  return launched;
}

// Launchers of MPI that say all they know in variables of their own. Where several are set, the
// first: those below leave theirs to what they start, such as jsrun, whose Open MPI sets both.
struct Announcer {
  const char *launcher, *rank, *size, *local_rank, *local_size;
};
constexpr Announcer kAnnouncers[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", "FLUX_TASK_LOCAL_SIZE"},
    {"PALS", "PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"},
    {"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK",
     "JSM_NAMESPACE_LOCAL_SIZE"},
};

std::optional<Launched> FromAnnouncer(const Environment& env) {
  for (const Announcer& each : kAnnouncers) {
    const bool own_size = std::string_view(each.size) != "PMI_SIZE";  // others set that one, too
    if (!env.Has(each.rank) && !(own_size && env.Has(each.size))) continue;
    Launched launched{.launcher = each.launcher, .mpi = true};
    env.Place(each.rank, each.size, launched);
    env.LocalPlace(each.local_rank, each.local_size, launched);
    return launched;
  }
  return std::nullopt;
}

std::optional<Launched> FromPmi(const Environment& env) {
  if (!env.Has("PMI_RANK") || !env.Has("PMI_SIZE")) return std::nullopt;
  Launched launched{.launcher = "MPICH (PMI)", .mpi = true};
  env.Place("PMI_RANK", "PMI_SIZE", launched);
  env.LocalPlace("MPI_LOCALRANKID", "MPI_LOCALNRANKS", launched);
  return launched;
}

// A process of a job step. In the script of a job, SLURM_PROCID is set as well, but it runs once,
// outside of srun: it is no rank. Slurm gives such steps the highest numbers.
bool IsStep(const Environment& env) {
  if (!env.Has("SLURM_PROCID") || !env.Has("SLURM_STEP_NUM_TASKS")) return false;
  const auto step = ParseNumber<uint32_t>(env.Text("SLURM_STEP_ID"));
  return step && *step < 0xfffffff0u;
}

std::optional<Launched> FromSlurm(const Environment& env) {
  if (!IsStep(env)) return std::nullopt;
  Launched launched{.launcher = "Slurm"};
  env.Place("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", launched);
  const std::vector<int> counts = ExpandCounts(env.Text("SLURM_STEP_TASKS_PER_NODE"));
  const auto node = env.Number("SLURM_NODEID", 0);
  if (node && size_t(*node) < counts.size()) launched.local_size = counts[*node];
  launched.local_rank = env.Number("SLURM_LOCALID", 0);
  launched.hosts = ExpandHosts(
      env.Text(env.Has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST"));
  launched.cpus_per_task = env.Number("SLURM_CPUS_PER_TASK", 1);
  return launched;
}

std::optional<Launched> FromPmix(const Environment& env) {
  if (!env.Has("PMIX_RANK")) return std::nullopt;
  Launched launched{.launcher = "PMIx", .mpi = true};
  launched.rank = *env.Number("PMIX_RANK", 0);
  return launched;
}

// "1-3", "07-09", "12": appended to `head`.
void AppendRange(std::string_view range, const std::string& head, std::vector<std::string>& all,
                 std::string_view list) {
  const size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  const std::string_view high = dash == range.npos ? low : range.substr(dash + 1);
  const auto first = ParseNumber<uint32_t>(low), last = ParseNumber<uint32_t>(high);
  const bool is_number = first && last && low[0] != '+' && high[0] != '+' && low.size() <= 10;
  if (!is_number || *last < *first) {
    throw Error("\"{}\" is not a range of hosts (in \"{}\")", range, list);
  }
  if (uint64_t{*last} - *first + all.size() >= kMostHosts) {
    throw Error("more than {} hosts in \"{}\"", kMostHosts, list);
  }
  for (uint64_t i = *first; i <= *last; ++i) {
    all.push_back(fmt::format("{}{:0{}}", head, i, low.size()));
  }
}

// One element of the list: names and ranges in brackets, in turns. The last range counts fastest.
std::vector<std::string> ExpandElement(std::string_view element, std::string_view list) {
  constexpr size_t kLongest = 1024;
  if (element.size() > kLongest)
    throw Error("a name in the list of hosts has more than {} characters", kLongest);
  std::vector<std::string> names{""};
  while (!element.empty()) {
    const size_t open = element.find('[');
    for (std::string& name : names) name += element.substr(0, open);
    if (open == element.npos) break;
    const size_t close = element.find(']', open);
    if (close == element.npos) throw Error("a bracket is not closed in \"{}\"", list);
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& range : Split(element.substr(open + 1, close - open - 1), ',')) {
        AppendRange(range, name, longer, list);
      }
    }
    names = std::move(longer);
    element.remove_prefix(close + 1);
  }
  return names;
}

std::optional<Launched> FromMpiOrSlurm(const Environment& env) {
  if (auto launched = FromAnnouncer(env)) return launched;
  auto slurm = FromSlurm(env), pmi = FromPmi(env);
  // srun --mpi=pmi2 sets both, and Slurm says more. MPICH's mpirun inside a job starts one helper
  // per node as a step, whose numbers its ranks inherit.
  if (slurm && pmi && (slurm->rank != pmi->rank || slurm->size != pmi->size)) return pmi;
  if (slurm) return slurm;
  if (pmi) return pmi;
  return FromPmix(env);
}

// Where launchers are nested, the innermost.
std::optional<Launched> Innermost(const Environment& env) {
  if (auto launched = FromTrireme(env)) return launched;
  auto torchrun = FromTorchrun(env), outer = FromMpiOrSlurm(env);
  // srun or mpirun may start torchrun on each node, whose ranks inherit the numbers of their node.
  // Where a script sets torchrun's variables from those of mpirun or srun, these say more.
  const bool same =
      outer && torchrun && outer->rank == torchrun->rank && outer->size == torchrun->size;
  return torchrun && !same ? torchrun : outer;
}

}  // namespace

std::vector<std::string> ExpandHosts(std::string_view list) {
  std::vector<std::string> hosts;
  for (size_t begin = 0; begin < list.size();) {
    size_t end = begin;  // the next comma that is not in brackets
    for (bool inside = false; end < list.size() && (inside || list[end] != ','); ++end) {
      if (list[end] == '[') inside = true;
      if (list[end] == ']') inside = false;
    }
    const std::string_view element = list.substr(begin, end - begin);
    if (element.empty()) throw Error("an empty name in the list of hosts \"{}\"", list);
    for (std::string& host : ExpandElement(element, list)) hosts.push_back(std::move(host));
    if (hosts.size() > kMostHosts) throw Error("more than {} hosts in \"{}\"", kMostHosts, list);
    begin = end + 1;
  }
  return hosts;
}

std::vector<int> ExpandCounts(std::string_view list) {
  std::vector<int> counts;
  if (list.empty()) return counts;
  for (const std::string& part : Split(list, ',')) {
    const size_t open = part.find("(x");
    const auto count = ParseNumber<int>(part.substr(0, open));
    std::optional<uint32_t> times = 1;
    if (open != part.npos) {
      times = part.back() == ')'
                  ? ParseNumber<uint32_t>(part.substr(open + 2, part.size() - open - 3))
                  : std::nullopt;
    }
    if (!count || *count < 1 || !times || *times < 1 || counts.size() + *times > kMostHosts) {
      throw Error("\"{}\" is not a list of tasks per node, such as 2(x3),1", list);
    }
    counts.insert(counts.end(), *times, *count);
  }
  return counts;
}

std::optional<Launched> FindLauncher(FunctionRef<const char*(const char* name)> variable) {
  const Environment env(variable);
  auto launched = Innermost(env);
  if (launched) launched->meet = env.Text("TRIREME_MEET");
  return launched;
}

}  // namespace trireme
