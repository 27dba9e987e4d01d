#include "launch/launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <numeric>

#include "base/cores.h"
#include "base/error.h"
#include "base/files.h"
#include "launch/hosts_file.h"
#include "launch/server_run.h"
#include "launch/shm_run.h"
#include "launch/tcp_run.h"
#include "transport/address.h"
#include "transport/host_groups.h"
#include "transport/lookout.h"
#include "transport/mpi/world.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

// Ranks of one machine meet at a socket that is there before they start.
TcpSetup OnLoopback(TcpSetup setup) {
  int port = 0;
  setup.listener = ListenOnLoopback(port);
  setup.meet = fmt::format("127.0.0.1:{}", port);
  return setup;
}

// Where the user wants to be found.
TcpSetup ListeningAt(const std::string& where, TcpSetup setup) {
  const auto address = ParseAddress(where);
  if (!address || !address->port) {
    throw UsageError("transport.listen = \"{}\" is not ADDRESS:PORT", where);
  }
  setup.bind = address->host;
  const bool anywhere = setup.bind == "0.0.0.0" || setup.bind == "::";
  setup.meet = anywhere ? FormatAddress("127.0.0.1", *address->port) : where;
  return setup;
}

// The same port, by the name that others know.
std::string NameOfThis(const std::string& meet) {
  char name[256] = {};
  const bool known = gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0';
  return FormatAddress(known ? name : "HOST", *ParseAddress(meet)->port);
}

bool IsLocal(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

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

void Launcher::Resolve(bool ranks_given) {
  if (options_.name == "auto") options_.name = options_.hosts.empty() ? "threads" : "tcp";
  if (options_.name == "mpi") {
    throw UsageError(
        "transport.name = \"mpi\": no launcher started this process as one of several; "
        "start it with mpirun or srun");
  }
  if (options_.name == "tcp" && !options_.meet.empty()) {
    throw UsageError(
        "transport.meet needs a launcher that says which rank this is (TRIREME_RANK and "
        "TRIREME_WORLD), or use transport.hosts");
  }
  kind_ = options_.name == "shm"   ? Kind::kShm
          : options_.name == "tcp" ? Kind::kTcp
                                   : Kind::kThreads;
  if (!options_.hosts.empty()) {
    if (kind_ != Kind::kTcp) {
      throw UsageError("transport.hosts is for transport.name = \"tcp\", not \"{}\"",
                       options_.name);
    }
    return ReadHosts(ranks_given);
  }
  local_ = options_.ranks;
  neighbours_.ranks = Ranks(0, local_);
}

void Launcher::ReadHosts(bool ranks_given) {
  const auto hosts = ParseHosts(ReadFile(options_.hosts), options_.hosts);
  const int own = FindOwnLine(hosts, OwnNames(), options_.hosts);
  if (own < 0) throw UsageError("transport.hosts: {} does not name this machine", options_.hosts);
  int total = 0;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (int(i) == own) first_ = total;
    total += hosts[i].ranks;
  }
  if (ranks_given && options_.ranks != total) {
    throw UsageError("transport.ranks = {}, but {} names {}", options_.ranks, options_.hosts,
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
  if (options_.name == "auto") {
    const bool meets = !options_.meet.empty() || !launched.meet.empty();
    options_.name = launched.size && (meets || !launched.mpi) ? "tcp" : "mpi";
  }
  kind_ = Kind::kJoined;
  first_ = launched.rank;
  local_ = 1;
  neighbours_ = {.ranks = {first_}, .process_each = true};
  if (!launched.size) {
    if (options_.name == "mpi") return;  // which knows it
    throw UsageError(
        "{} does not say how many processes it started, so that transport.name = \"{}\" might let "
        "them train the same model one by one; use mpi",
        launched.launcher, options_.name);
  }
  const int size = *launched.size;
  if (options_.name != "mpi" && options_.name != "tcp") {
    throw UsageError(
        "{} started {} processes, which transport.name = \"{}\" would let train the same model one "
        "by one; use mpi or tcp, or start one process with --ranks {}",
        launched.launcher, size, options_.name, size);
  }
  CheckGiven(ranks_given, size);
  options_.ranks = size;
  if (options_.name == "mpi") return;
  across_hosts_ = launched.local_size.value_or(1) < size;
  meet_ = !options_.meet.empty() ? options_.meet : launched.meet;
  if (!meet_.empty()) return;
  if (launched.hosts.empty()) {
    throw UsageError(launched.launcher == "trireme"
                         ? "TRIREME_RANK is set; set TRIREME_MEET=HOST:PORT, too: where rank 0 is"
                         : launched.launcher +
                               " does not say where rank 0 is; set transport.meet=HOST:PORT");
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
        "ranks on several machines need a secret: the same transport.secret_file or "
        "TRIREME_SECRET for all");
  }
  return secret;
}

void Launcher::Join(const Log* log) {
  if (kind_ != Kind::kJoined || world_) return;
  if (options_.name == "mpi") {
    world_ = JoinMpi(
        {.plugin = options_.plugin, .timeout_s = options_.timeout_s, .launched = launched_});
    CheckGiven(ranks_given_, world_->size());
    options_.ranks = world_->size();
  } else {
    world_ = JoinTcp(Tcp(log));
  }
  FindNeighbours();
}

// A launcher may give each rank its own processors (srun, mpirun --bind-to core), all those of a
// machine the same, or one set to some of them (mpirun by socket).
void Launcher::FindNeighbours() {
  constexpr Tag kTag = 0;
  const std::string cpus = FormatCpuList(ReadCoreFacts().affinity);
  const auto all = HostOfRank(world_->group(), kTag, cpus);
  neighbours_.ranks.clear();
  for (int r = 0; r < world_->size(); ++r) {
    if (all[r] == all[first_]) neighbours_.ranks.push_back(r);
  }
}

TcpSetup Launcher::Tcp(const Log* log) const {
  TcpSetup setup{.rank = first_, .size = options_.ranks, .meet = meet_};
  const auto address = ParseAddress(meet_);
  const bool ipv6 = address && address->is_ipv6();
  if (across_hosts_) {
    setup.bind = ipv6 ? "::" : "0.0.0.0";
  } else if (ipv6) {
    setup.bind = "::1";
  }
  if (!options_.bind.empty()) setup.bind = options_.bind;
  setup.secret = Secret();
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
  return setup;
}

void Launcher::Abort(std::string_view reason) noexcept {
  if (world_) world_->group().Abort(reason);
}

int Launcher::Run(const Needs& needs, FunctionRef<int(World&)> fn) {
  switch (kind_) {
    case Kind::kJoined: {
      Join(needs.log);
      const Lookout lookout(needs.signal);
      return fn(*world_);
    }
    case Kind::kShm:
      return RunShm({.ranks = options_.ranks,
                     .timeout_s = options_.timeout_s,
                     .bytes = needs.shared_bytes,
                     .signal = needs.signal},
                    fn);
    case Kind::kTcp: {
      const TcpSetup setup = meet_.empty() ? OnLoopback(Tcp(needs.log)) : Tcp(needs.log);
      return RunTcp({.setup = setup, .local = local_, .signal = needs.signal}, fn);
    }
    case Kind::kThreads:
      break;
  }
  const Lookout lookout(needs.signal);
  std::atomic<int> status = 0;
  RunRanks(options_.ranks, options_.timeout_s, [&](World& world) {
    const int own = fn(world);
    if (world.rank() == 0) status = own;
  });
  return status;
}

int Launcher::RunFree(const FreeNeeds& needs, FunctionRef<int(World&)> fn) {
  if (!star()) return Run({.signal = needs.signal, .log = needs.log}, fn);
  TcpSetup tcp = Tcp(needs.log);
  if (!options_.listen.empty()) {
    tcp = ListeningAt(options_.listen, tcp);
  } else if (meet_.empty()) {
    tcp = OnLoopback(tcp);
  }
  const bool anywhere = !options_.listen.empty() && options_.listen != tcp.meet;
  const std::string join = anywhere && !tcp.secret.empty() ? NameOfThis(tcp.meet) : tcp.meet;
  const auto announce = [&] {
    if (!needs.announce || !needs.log) return;
    needs.log->Info("server", "listens at {}{}", anywhere ? options_.listen : tcp.meet,
                    needs.servers == 1 ? "; more clients: trireme join " + join : "");
    if (tcp.secret.empty() && !IsLocal(tcp.bind)) {
      needs.log->Warn("server",
                      "without a secret (transport.secret_file, TRIREME_SECRET) only clients of "
                      "this machine are let in");
    }
  };
  const int status = RunStar({.setup = {.tcp = tcp,
                                        .card = needs.card,
                                        .judge = needs.judge,
                                        .notice = needs.notice,
                                        .refused = needs.refused},
                              .local = local_,
                              .servers = needs.servers,
                              .teams = needs.teams,
                              .team_bytes = needs.team_bytes,
                              .signal = needs.signal,
                              .log = needs.log,
                              .listens = announce},
                             fn);
  if (tcp.listener >= 0) close(tcp.listener);
  return status;
}

}  // namespace trireme
