#include "transport/tcp/star_run.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/error.h"
#include "transport/forked.h"

namespace trireme {
namespace {

// Lives in a row that were shorter than a second: then it is not chance.
constexpr int kMostShortLives = 20;

struct Life {
  Deadline began = After(0);
  int short_ones = 0;
  bool gone = false;
};

// A socket for each team of this machine, there before the first of it is.
class TeamPorts {
 public:
  ~TeamPorts() {
    for (auto& [team, port] : ports_) close(port.fd);
  }
  void Open(int team) {
    if (team < 0 || ports_.contains(team)) return;
    Port& port = ports_[team];
    port.fd = ListenOnLoopback(port.number);
  }
  // In a rank's process: the others' are closed.
  void Give(int team, StarSetup& setup) {
    for (auto& [number, port] : ports_) {
      if (number != team) {
        close(port.fd);
        continue;
      }
      setup.team_listener = port.fd;
      setup.team_meet = fmt::format("127.0.0.1:{}", port.number);
    }
  }

 private:
  struct Port {
    int fd = -1, number = 0;
  };
  std::map<int, Port> ports_;
};

}  // namespace

int RunStar(const StarRanks& ranks, FunctionRef<int(World&)> fn) {
  const int first = ranks.setup.tcp.rank;
  const auto team = [&](int local) {
    return ranks.teams.empty() ? -1 : ranks.teams[size_t(first + local)];
  };
  TeamPorts ports;
  for (int r = 0; r < ranks.local; ++r) ports.Open(team(r));
  std::vector<Life> lives(size_t(ranks.local));
  const auto run = [&](int local) {
    StarSetup setup = ranks.setup;
    setup.tcp.rank += local;
    if (setup.tcp.rank != 0 && setup.tcp.listener >= 0) {
      close(setup.tcp.listener);
      setup.tcp.listener = -1;
    }
    ports.Give(team(local), setup);
    // For whoever looks at processes: their names say which rank they are.
    const std::string name =
        setup.tcp.rank == 0 ? "trireme-server" : fmt::format("trireme-r{}", setup.tcp.rank);
    prctl(PR_SET_NAME, name.c_str());
    const auto world = JoinStar(setup);
    return fn(*world);
  };
  const auto fate = [&](int local, const std::string& why, bool killed) {
    const int rank = first + local;
    Life& life = lives[size_t(local)];
    life.short_ones = After(0) - life.began < std::chrono::seconds(1) ? life.short_ones + 1 : 0;
    life.began = After(0);
    const char* const role = rank == 0 ? "the server" : "client";
    // A rank that lost its team throws: the one that died is not always seen first.
    const bool teamed = team(local) >= 0;
    if ((killed || teamed) && life.short_ones < kMostShortLives) {
      if (ranks.log) {
        ranks.log->Warn("ranks", "{} (rank {}) was {}; it is started again", role, rank, why);
      }
      return teamed ? Forked::Fate::kStartTeamAgain : Forked::Fate::kStartAgain;
    }
    life.gone = true;
    const bool others = std::any_of(lives.begin() + (first == 0), lives.end(),
                                    [](const Life& l) { return !l.gone; });
    if (rank == 0 || (first == 0 && !others)) return Forked::Fate::kEndsAll;
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
