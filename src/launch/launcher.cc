#include "launch/launcher.h"

#include <cstdlib>
#include <numeric>

#include "base/cores.h"
#include "base/error.h"
#include "base/files.h"
#include "launch/batch_hosts.h"
#include "launch/hosts_file.h"
#include "launch/memory_world.h"
#include "launch/signal_poller.h"
#include "transport/address.h"
#include "transport/collective/host_groups.h"

namespace trireme {
namespace {

// The first that can do what is wanted.
const TransportKind* First(FunctionRef<bool(const TransportKind&)> can) {
  for (const TransportKind& kind : TransportKinds()) {
    if (can(kind)) return &kind;
  }
  return nullptr;
}

// "a or b": those that can.
std::string Names(FunctionRef<bool(const TransportKind&)> can) {
  std::string names;
  for (const TransportKind& kind : TransportKinds()) {
    if (can(kind)) names += (names.empty() ? "" : " or ") + std::string(kind.name);
  }
  return names;
}

constexpr auto kMeets = [](const TransportKind& kind) { return kind.meets; };
constexpr auto kJoins = [](const TransportKind& kind) { return kind.join != nullptr; };
// Needs no address and no number of ranks: what started it tells.
constexpr auto kJoinsByItself = [](const TransportKind& kind) { return kind.join && !kind.meets; };

std::vector<int> Ranks(int first, int count) {
  std::vector<int> ranks(count);
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

}  // namespace

Launcher::Launcher(TransportOptions& options, bool ranks_given, std::optional<Launched> launched)
    : options_(options), launched_(std::move(launched)), ranks_given_(ranks_given) {
  if (launched_ && !launched_->alone()) {
    ResolveLaunched(ranks_given);
  } else {
    Resolve(ranks_given);
  }
}

Launcher::~Launcher() = default;

void Launcher::Choose(const TransportKind* otherwise) {
  kind_ = options_.name == kAutoTransport ? otherwise : FindTransport(options_.name);
  if (!kind_) {
    throw UsageError("transport.name = \"{}\" is unknown; use {}", options_.name,
                     Names([](const TransportKind&) { return true; }));
  }
  options_.name = kind_->name;
}

void Launcher::Resolve(bool ranks_given) {
  const bool hosts = !options_.hosts.empty();
  Choose(First([&](const TransportKind& kind) { return kind.run && (!hosts || kind.meets); }));
  if (!kind_->run) {
    throw UsageError(
        "transport.name = \"{}\": no launcher started this process as one of several; "
        "start it with mpirun or srun",
        options_.name);
  }
  if (kind_->meets && !options_.meet.empty()) {
    throw UsageError(
        "transport.meet needs a launcher that says which rank this is; set TRIREME_RANK and "
        "TRIREME_WORLD, or use transport.hosts");
  }
  if (hosts) {
    if (!kind_->meets) {
      throw UsageError("transport.hosts needs transport.name = \"{}\", not \"{}\"", Names(kMeets),
                       options_.name);
    }
    return ReadHosts(ranks_given);
  }
  local_ = options_.ranks;
  neighbours_.ranks = Ranks(0, local_);
}

void Launcher::ReadHosts(bool ranks_given) {
  const bool batch = options_.hosts == kAutoHosts;
  const auto variable = [](const char* name) -> const char* { return std::getenv(name); };
  const BatchHosts list =
      batch ? ReadBatchHosts(variable) : BatchHosts{ReadFile(options_.hosts), options_.hosts};
  const auto hosts = ParseHosts(list.text, list.file);
  const int own = FindOwnLine(hosts, OwnNames(), list.file);
  if (own < 0) {
    throw UsageError("transport.hosts: {} does not name this machine; {}", list.file,
                     batch ? "start the command on those that it names" : "add a line for it");
  }
  int total = 0;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (int(i) == own) first_ = total;
    total += hosts[i].ranks;
  }
  if (ranks_given && options_.ranks != total) {
    throw UsageError("transport.ranks = {}, but {} lists {} ranks", options_.ranks, list.file,
                     total);
  }
  options_.ranks = total;
  local_ = hosts[own].ranks;
  neighbours_.ranks = Ranks(first_, local_);
  for (const HostLine& host : hosts) {
    host_of_rank_.insert(host_of_rank_.end(), size_t(host.ranks), host.address.host);
  }
  across_hosts_ = hosts.size() > 1;
  const Address& first = hosts[0].address;
  if (across_hosts_ || !options_.bind.empty()) {
    meet_ = FormatAddress(first.host, first.port.value_or(kPort));
  } else if (first.port) {
    meet_ = FormatAddress("127.0.0.1", *first.port);
  }
}

void Launcher::ResolveLaunched(bool ranks_given) {
  const Launched& launched = *launched_;
  const bool known = !options_.meet.empty() || !launched.meet.empty();
  const bool meets = launched.size && (known || !launched.mpi);
  Choose(
      First([&](const TransportKind& kind) { return meets ? kind.meets : kJoinsByItself(kind); }));
  joins_ = true;
  first_ = launched.rank;
  local_ = 1;
  neighbours_ = {.ranks = {first_}, .process_each = true};
  if (!launched.size) {
    if (kJoinsByItself(*kind_)) return;
    throw UsageError(
        "{} does not say how many processes it started, so with transport.name = \"{}\" each might "
        "train the same model on its own; use {}",
        launched.launcher, options_.name, Names(kJoinsByItself));
  }
  const int size = *launched.size;
  if (!kind_->join) {
    throw UsageError(
        "{} started {} processes, but with transport.name = \"{}\" each would train the same model "
        "on its own; use {}, or start one process with --ranks {}",
        launched.launcher, size, options_.name, Names(kJoins), size);
  }
  CheckGiven(ranks_given, size);
  options_.ranks = size;
  if (!kind_->meets) return;
  across_hosts_ = launched.local_size.value_or(1) < size;
  meet_ = !options_.meet.empty() ? options_.meet : launched.meet;
  if (!meet_.empty()) return;
  if (launched.hosts.empty()) {
    throw UsageError(
        launched.launcher == "trireme"
            ? "TRIREME_RANK is set, but TRIREME_MEET is not; set it to HOST:PORT of rank 0"
            : launched.launcher + " does not say where rank 0 is; set transport.meet=HOST:PORT");
  }
  // Ranks of one machine need not know how it is called.
  const bool here = !across_hosts_ && options_.bind.empty();
  meet_ = FormatAddress(here ? "127.0.0.1" : launched.hosts[0], launched.port);
}

void Launcher::CheckGiven(bool ranks_given, int started) const {
  if (!ranks_given || options_.ranks == started) return;
  throw UsageError("transport.ranks = {}, but {} started {} processes", options_.ranks,
                   launched_->launcher, started);
}

std::string Launcher::Secret() const {
  std::string secret;
  if (!options_.secret_file.empty()) {
    secret = ReadFile(options_.secret_file);
    secret.erase(secret.find_last_not_of(" \t\r\n") + 1);
    if (secret.empty())
      throw UsageError("transport.secret_file: {} is empty", options_.secret_file);
  } else if (const char* given = std::getenv("TRIREME_SECRET")) {
    secret = given;
  }
  if (secret.empty() && across_hosts_) {
    throw UsageError(
        "ranks on several machines need a secret; give all of them the same transport.secret_file "
        "or TRIREME_SECRET");
  }
  return secret;
}

void Launcher::Join(const Log* log) {
  if (!joins_ || world_) return;
  world_ = kind_->join(Local(log, kind_->meets));
  CheckGiven(ranks_given_, world_->size());
  options_.ranks = world_->size();
  FindNeighbours();
}

// A launcher may give each rank its own processors (srun, mpirun --bind-to core), all those of a
// machine the same, or one set to some of them (mpirun by socket).
void Launcher::FindNeighbours() {
  constexpr Tag kTag = 0;
  const std::string cpus = FormatCpuList(ReadCoreFacts().affinity);
  const auto like_this = [&](std::string_view part) {
    const auto all = HostOfRank(world_->group(), kTag, part);
    std::vector<int> ranks;
    for (int r = 0; r < world_->size(); ++r) {
      if (all[r] == all[first_]) ranks.push_back(r);
    }
    return ranks;
  };
  neighbours_.ranks = like_this(cpus);
  neighbours_.host = like_this("");
}

LocalRanks Launcher::Local(const Log* log, bool secret) const {
  TcpSetup setup{.rank = first_, .size = options_.ranks, .meet = meet_};
  const auto address = ParseAddress(meet_);
  const bool ipv6 = address && address->is_ipv6();
  if (across_hosts_) {
    setup.bind = ipv6 ? "::" : "0.0.0.0";
  } else if (ipv6) {
    setup.bind = "::1";
  }
  if (!options_.bind.empty()) setup.bind = options_.bind;
  if (secret) setup.secret = Secret();
  setup.join_s = options_.join_s;
  setup.timeout_s = options_.timeout_s;
  setup.throttle = options_.throttle;
  setup.latency_s = options_.latency_ms * 1e-3;
  setup.host_of_rank = host_of_rank_;
  // Of those that a launcher started on a machine, one speaks.
  const bool speaks = !launched() || launched_->local_rank.value_or(0) == 0;
  if (log && speaks && !complete()) {
    setup.say = [log](const std::string& words) { log->Info("ranks", "{}", words); };
  }
  return {.options = options_, .launched = launched_, .tcp = setup, .count = local_};
}

void Launcher::Abort(std::string_view reason) noexcept {
  if (world_) world_->group().Abort(reason);
}

int Launcher::Run(const PeerNeeds& needs, FunctionRef<int(World&)> fn) {
  if (!joins_) return kind_->run(*kind_, Local(needs.log, kind_->meets), needs, fn);
  Join(needs.log);
  const SignalPoller poller(needs.signal);
  return fn(*world_);
}

int Launcher::RunServed(const ServerNeeds& needs, FunctionRef<int(World&)> fn) {
  if (needs.memory.regions == 0) return RunWithLinks(needs, fn);
  if (options_.throttle > 0 || options_.latency_ms > 0) {
    throw UsageError(
        "transport.throttle and transport.latency_ms slow down messages of ranks, but with "
        "strategy.centre = \"memory\" weights do not travel in them; unset both");
  }
  const MemorySetup memory = MemoryFor(needs);
  return RunWithLinks(needs, [&](World& world) {
    MemoryWorld with_memory(world, memory);
    return fn(with_memory);
  });
}

MemorySetup Launcher::MemoryFor(const ServerNeeds& needs) const {
  MemorySetup memory{.boxes = options_.memory,
                     .way = LongValuesFor(options_.memory_way),
                     .box = {.bytes = needs.memory.regions + needs.memory.slots,
                             .threads = needs.memory_threads,
                             .timeout_s = options_.timeout_s},
                     .secret = Secret(),
                     .refused = needs.refused};
  // Of those that a launcher started on a machine, one speaks.
  const bool speaks = !launched() || launched_->local_rank.value_or(0) == 0;
  if (needs.announce && needs.log && speaks) {
    memory.say = [log = needs.log, first = first_](int rank, const std::string& words) {
      if (rank == first) log->Info("memory", "{}", words);
    };
  }
  if (!memory.boxes.empty()) return memory;
  memory.by_world = joins_ && kind_->gives_memory;
  if (memory.by_world) {
    memory.box.bytes = needs.memory.regions;
    return memory;
  }
  if (holds(0)) memory.image = MemoryImage::Anonymous(memory.box.bytes);
  if (complete()) return memory;
  const auto address = ParseAddress(meet_);
  if (!address || !address->port) {
    throw UsageError(
        "strategy.centre = \"memory\": ranks that {} started do not know where rank 0 keeps its "
        "memory; start `trireme memory-box` and set transport.memory=HOST:PORT",
        launched_ ? launched_->launcher : "a launcher");
  }
  memory.meet = FormatAddress(address->host, *address->port + 1);
  const std::string& host = Local(nullptr, false).tcp.bind;
  memory.listen = FormatAddress(host, *address->port + 1);
  return memory;
}

int Launcher::RunWithLinks(const ServerNeeds& needs, FunctionRef<int(World&)> fn) {
  if (joins_ || !kind_->run_served) return Run({.signal = needs.signal, .log = needs.log}, fn);
  return kind_->run_served(Local(needs.log, true), needs, fn);
}

}  // namespace trireme
