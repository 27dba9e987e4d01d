#include "transport/tcp/star_run.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "transport/forked.h"
#include "transport/shm/segment.h"

namespace trireme {
namespace {

// Lives in a row that were shorter than a second: then it is not chance.
constexpr int kMostShortLives = 20;

struct Life {
  Deadline began = After(0);
  int short_ones = 0;
  bool gone = false;
};

// Where the teams of this machine meet, there before the first of a team is: a socket, or memory.
class TeamPlaces {
 public:
  explicit TeamPlaces(size_t bytes) : bytes_(bytes) {}
  ~TeamPlaces() {
    for (auto& [team, place] : places_) {
      if (place.fd >= 0) close(place.fd);
    }
  }
  void Add(int team) {  // a rank of it
    if (team < 0) return;
    Place& place = places_[team];
    ++place.ranks;
    if (bytes_ == 0 && place.fd < 0) place.fd = ListenOnLoopback(place.port);
  }
  // For ranks that are started from now on: what others left in the memory is not theirs.
  void Renew(int team) {
    const auto found = places_.find(team);
    if (bytes_ == 0 || found == places_.end()) return;
    found->second.memory = std::make_unique<ShmSegment>(found->second.ranks, bytes_);
  }
  void RenewAll() {
    for (auto& [team, place] : places_) Renew(team);
  }
  // In a rank's process: the others' are closed.
  void Give(int team, StarSetup& setup) {
    for (auto& [number, place] : places_) {
      if (number == team) {
        setup.team_memory = place.memory.get();
        setup.team_listener = place.fd;
        if (place.fd >= 0) setup.team_meet = fmt::format("127.0.0.1:{}", place.port);
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
  explicit MoreServers(const StarRanks& ranks) {
    const TcpSetup& tcp = ranks.setup.tcp;
    if (ranks.servers > 1 && tcp.rank == 0 && ranks.servers > ranks.local) {
      throw UsageError(
          "strategy.servers = {}, but only {} ranks are on the machine of rank 0, where servers "
          "are",
          ranks.servers, ranks.local);
    }
    const size_t colon = tcp.meet.rfind(':');
    const int first = ParseNumber<uint16_t>(tcp.meet.substr(colon + 1)).value_or(0);
    for (int s = 1; s < ranks.servers; ++s) {
      int fd = -1, port = first + s;
      if (tcp.rank == 0 && tcp.listener >= 0) fd = ListenOnLoopback(port);
      if (port > 0xffff) {
        throw UsageError("{} servers at ports from {} on: there are not so many ports",
                         ranks.servers, first);
      }
      sockets_.push_back(fd);
      meets_.push_back(fmt::format("{}:{}", tcp.meet.substr(0, colon), port));
    }
  }
  ~MoreServers() {
    for (const int fd : sockets_) {
      if (fd >= 0) close(fd);
    }
  }
  // In a rank's process: the others' are closed, also the first's.
  void Give(StarSetup& setup) {
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
  std::vector<int> sockets_;
  std::vector<std::string> meets_;
};

std::string NameOf(int rank, int servers) {
  if (rank == 0) return "trireme-server";
  return rank < servers ? fmt::format("trireme-server{}", rank) : fmt::format("trireme-r{}", rank);
}

constexpr int kTeamOfServers = -2;

}  // namespace

int RunStar(const StarRanks& ranks, FunctionRef<int(World&)> fn) {
  const int first = ranks.setup.tcp.rank;
  const auto team = [&](int local) {
    if (first + local < ranks.servers) return kTeamOfServers;
    return ranks.teams.empty() ? -1 : ranks.teams[size_t(first + local)];
  };
  MoreServers more(ranks);
  TeamPlaces places(ranks.team_bytes);
  for (int r = 0; r < ranks.local; ++r) places.Add(team(r));
  places.RenewAll();
  std::vector<Life> lives(size_t(ranks.local));
  const auto run = [&](int local) {
    StarSetup setup = ranks.setup;
    setup.tcp.rank += local;
    more.Give(setup);
    places.Give(team(local), setup);
    // For whoever looks at processes: their names say which rank they are.
    prctl(PR_SET_NAME, NameOf(setup.tcp.rank, ranks.servers).c_str());
    const auto world = JoinStar(setup);
    return fn(*world);
  };
  const auto fate = [&](int local, const std::string& why, bool killed) {
    const int rank = first + local;
    Life& life = lives[size_t(local)];
    life.short_ones = After(0) - life.began < std::chrono::seconds(1) ? life.short_ones + 1 : 0;
    life.began = After(0);
    const bool serves = rank < ranks.servers, teamed = team(local) >= 0;
    // A rank that lost its team throws: the one that died is not always seen first.
    if ((killed || teamed) && life.short_ones < kMostShortLives) {
      if (ranks.log) {
        ranks.log->Warn("ranks", "{} (rank {}) was {}; {} started again",
                        serves ? "the server" : "client", rank, why,
                        serves && ranks.servers > 1 ? "all servers are" : "it is");
      }
      places.Renew(team(local));
      return teamed || serves ? Forked::Fate::kStartTeamAgain : Forked::Fate::kStartAgain;
    }
    life.gone = true;
    const int own_servers = std::max(0, ranks.servers - first);
    const bool others = std::any_of(lives.begin() + std::min(own_servers, ranks.local), lives.end(),
                                    [](const Life& l) { return !l.gone; });
    if (serves || (first == 0 && !others)) return Forked::Fate::kEndsAll;
    if (ranks.log) ranks.log->Warn("ranks", "rank {} is lost: {}; the others go on", rank, why);
    return Forked::Fate::kGoOnWithout;
  };
  const auto lost = [](int, const std::string&) {};
  return RunForked({.ranks = ranks.local,
                    .first = first,
                    .world = ranks.setup.tcp.size,
                    .run = run,
                    .lost = lost,
                    .signal = ranks.signal,
                    .fate = fate,
                    .team = team});
}

}  // namespace trireme
