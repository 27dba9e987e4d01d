#include "launch/server_run.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/signals.h"
#include "transport/address.h"
#include "transport/forked.h"
#include "transport/shared_array.h"
#include "transport/shm/segment.h"

namespace trireme {
namespace {

// Those who live and die together: a group, the servers, or a rank alone.
struct Life {
  int64_t steps_before = 0;
  int in_vain = 0;  // lives in a row without a step
  bool gone = false;
};

// Then it is not chance.
constexpr int kMostLivesInVain = 20;

// Where the groups of this machine meet, there before the first of a group is: a socket, or memory.
class GroupPlaces {
 public:
  explicit GroupPlaces(size_t bytes) : bytes_(bytes) {}
  ~GroupPlaces() {
    for (auto& [group, place] : places_) {
      if (place.fd >= 0) close(place.fd);
    }
  }
  void Add(int group) {  // a rank of it
    if (group < 0) return;
    Place& place = places_[group];
    ++place.ranks;
    if (bytes_ == 0 && place.fd < 0) place.fd = ListenOnLoopback(place.port);
  }
  // For ranks that are started from now on: what others left in the memory is not theirs.
  void Renew(int group) {
    const auto found = places_.find(group);
    if (bytes_ == 0 || found == places_.end()) return;
    found->second.memory = std::make_unique<ShmSegment>(found->second.ranks, bytes_);
  }
  void RenewAll() {
    for (auto& [group, place] : places_) Renew(group);
  }
  // In a rank's process: the others' are closed.
  void Give(int group, ServerWorldSetup& setup) {
    for (auto& [number, place] : places_) {
      if (number == group) {
        setup.group_memory = place.memory.get();
        setup.group_listener = place.fd;
        if (place.fd >= 0) setup.group_meet = fmt::format("127.0.0.1:{}", place.port);
      } else if (place.fd >= 0) {
        close(place.fd);
      }
    }
  }

 private:
  struct Place {
    int ranks = 0;
    int fd = -1, port = 0;
    std::unique_ptr<ShmSegment> memory;
  };
  const size_t bytes_;
  std::map<int, Place> places_;
};

// Where the servers after the first listen.
class MoreServers {
 public:
  explicit MoreServers(const ServerRanks& ranks) {
    const TcpSetup& tcp = ranks.setup.tcp;
    const Address address = ParseAddress(tcp.meet).value_or(Address{});
    const int first = address.port.value_or(0);
    for (int s = 1; s < ranks.servers; ++s) {
      int fd = -1, port = first + s;
      if (tcp.rank == 0 && tcp.listener >= 0) fd = ListenOnLoopback(port);
      if (port > 0xffff) {
        throw UsageError("{} servers do not fit on the ports from {} up; choose a lower port",
                         ranks.servers, first);
      }
      sockets_.push_back(fd);
      meets_.push_back(FormatAddress(HostOf(s, tcp, address.host), port));
    }
  }
  ~MoreServers() {
    for (const int fd : sockets_) {
      if (fd >= 0) close(fd);
    }
  }
  // In a rank's process: the others' are closed, also the first's.
  void Give(ServerWorldSetup& setup) {
    setup.more_servers = meets_;
    if (setup.tcp.rank != 0 && setup.tcp.listener >= 0) close(setup.tcp.listener);
    if (setup.tcp.rank != 0) setup.tcp.listener = -1;
    for (int s = 1; s <= int(sockets_.size()); ++s) {
      const int fd = std::exchange(sockets_[size_t(s) - 1], -1);
      if (fd < 0) continue;
      if (s == setup.tcp.rank) {
        setup.tcp.listener = fd;
      } else {
        close(fd);
      }
    }
  }

 private:
  // By the hosts file. Ranks of the first's machine need not know how it is called.
  static std::string HostOf(int server, const TcpSetup& tcp, const std::string& first) {
    const auto& hosts = tcp.host_of_rank;
    return hosts.empty() || hosts[size_t(server)] == hosts[0] ? first : hosts[size_t(server)];
  }
  std::vector<int> sockets_;
  std::vector<std::string> meets_;
};

std::string NameOf(int rank, int servers) {
  if (rank == 0) return "trireme-server";
  return rank < servers ? fmt::format("trireme-server{}", rank) : fmt::format("trireme-r{}", rank);
}

constexpr int kNoGroup = -1, kGroupOfServers = -2;

}  // namespace

int RunServerRanks(const ServerRanks& ranks, FunctionRef<int(World&)> fn) {
  const int first = ranks.setup.tcp.rank;
  const auto serves = [&](int local) { return first + local < ranks.servers; };
  const auto group = [&](int local) {
    if (serves(local)) return kGroupOfServers;
    return ranks.groups.empty() ? kNoGroup : ranks.groups[size_t(first + local)];
  };
  const auto together = [&](int a, int b) {
    return a == b || (group(a) != kNoGroup && group(a) == group(b));
  };
  MoreServers more(ranks);
  GroupPlaces places(ranks.group_bytes);
  for (int r = 0; r < ranks.local; ++r) places.Add(group(r));
  places.RenewAll();
  SharedArray<std::atomic<int64_t>> steps(ranks.local);
  std::vector<Life> lives(size_t(ranks.local));  // at the first of each
  const auto life_of = [&](int local) -> Life& {
    int r = 0;
    while (!together(r, local)) ++r;
    return lives[size_t(r)];
  };
  const auto steps_with = [&](int local) {
    int64_t sum = 0;
    for (int r = 0; r < ranks.local; ++r) {
      if (together(r, local)) sum += steps[r].load(std::memory_order_relaxed);
    }
    return sum;
  };
  const auto clients_left = [&] {
    for (int r = 0; r < ranks.local; ++r) {
      if (!serves(r) && !life_of(r).gone) return true;
    }
    return false;
  };
  bool started_again = false;
  const auto run = [&](int local) {
    ServerWorldSetup setup = ranks.setup;
    setup.tcp.rank += local;
    setup.steps = &steps[local];
    more.Give(setup);
    places.Give(group(local), setup);
    // For whoever looks at processes: their names say which rank they are.
    prctl(PR_SET_NAME, NameOf(setup.tcp.rank, ranks.servers).c_str());
    const auto say = std::exchange(setup.tcp.say, {});
    if (say) setup.tcp.stop = [&] { return ranks.signal && ranks.signal() != 0; };
    if (local == 0) setup.tcp.say = say;
    try {
      auto world = JoinServerWorld(setup);
      if (setup.tcp.rank == 0 && ranks.listens && !started_again) ranks.listens();
      try {
        return fn(*world);
      } catch (const Outdated&) {
        // As if it had been killed: whoever hears a goodbye does not dial its next life.
        static_cast<void>(world.release());
        throw;
      }
    } catch (const Interrupted& error) {
      if (setup.tcp.say) setup.tcp.say(error.what());
      return Signals::ExitCodeOf(ranks.signal());
    }
  };
  const auto fate = [&](int local, const std::string& why, Forked::End end) {
    const int rank = first + local;
    Life& life = life_of(local);
    const int64_t done = steps_with(local);
    life = {done, done == life.steps_before ? life.in_vain + 1 : 0};
    const bool grouped = group(local) >= 0;
    // The one of a group that died is not always seen first.
    const bool by_others = end == Forked::End::kKilled || end == Forked::End::kOutdated ||
                           (grouped && end == Forked::End::kLostPeer);
    if (by_others && life.in_vain < kMostLivesInVain) {
      if (ranks.log) {
        ranks.log->Warn("ranks", "{} (rank {}) {}{}; restarting {}",
                        serves(local) ? "the server" : "client", rank,
                        end == Forked::End::kOutdated ? "ended: " : "was ", why,
                        serves(local) && ranks.servers > 1 ? "the servers of this machine"
                        : grouped                          ? "its group"
                                                           : "it");
      }
      started_again = true;
      places.Renew(group(local));
      return grouped || serves(local) ? Forked::Fate::kStartGroupAgain : Forked::Fate::kStartAgain;
    }
    life.gone = true;
    if (serves(local) || (first == 0 && !clients_left())) return Forked::Fate::kEndsAll;
    if (ranks.log) {
      ranks.log->Warn("ranks", "rank {}{} is lost: {}; the others continue", rank,
                      grouped ? " with its group" : "", why);
    }
    return grouped ? Forked::Fate::kGoOnWithoutGroup : Forked::Fate::kGoOnWithout;
  };
  const auto lost = [](int, const std::string&) {};
  return RunForked({.ranks = ranks.local,
                    .first = first,
                    .world = ranks.setup.tcp.size,
                    .run = run,
                    .lost = lost,
                    .signal = ranks.signal,
                    .fate = fate,
                    .group = group});
}

}  // namespace trireme
