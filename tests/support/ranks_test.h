#pragma once
#include <csignal>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "launch/transports.h"
#include "support/whole_test.h"

namespace trireme::whole {

using Transport = std::string;  // the name of a row

// Those whose rows are so.
std::vector<Transport> Transports(const std::function<bool(const TransportKind&)>& which);
inline bool Any(const TransportKind&) { return true; }
inline bool ManyProcesses(const TransportKind& kind) { return !kind.one_process; }
inline bool SharesMemory(const TransportKind& kind) { return kind.shares_memory; }
inline bool StartsItself(const TransportKind& kind) { return kind.run; }

bool NeedsMpirun(const Transport& transport);
bool HasMpi();   // a plugin and an mpirun
int FreePort();  // of this machine
inline std::string TransportName(const testing::TestParamInfo<Transport>& info) {
  return info.param;
}

// 20 steps between checkpoints, 40 in an epoch, 12 shards; --steps is to be added.
inline const Words kSmallJob = {"train",
                                "--data",
                                "synthetic:8x8x1:5:1200",
                                "--model",
                                "mlp:64-32-5",
                                "--batch",
                                "24",
                                "--lr",
                                "0.02",
                                "--set",
                                "optimizer.schedule=constant",
                                "--set",
                                "trainer.shards=12",
                                "--set",
                                "trainer.checkpoint_steps=20",
                                "--deterministic",
                                "--threads",
                                "1",
                                "--quiet"};

// Jobs of several ranks, however they are started, and what they leave behind.
class RanksTest : public WholeTest {
 protected:
  RanksTest();

  // A command of `ranks` ranks: the words of a command line, and what starts the program.
  struct Command {
    Words words, launcher;
  };
  Command Over(const Transport& transport, int ranks, const Words& words) const;
  std::unique_ptr<Running> StartRanks(const Transport& transport, int ranks, const Words& words);
  void TrainRanks(const Transport& transport, int ranks, const Words& words);  // to exit code 0

  // The processes of the ranks, in their order, as soon as all are there; none if the job ends
  // before. Not for threads.
  std::vector<pid_t> AwaitRanks(Running& running, int ranks);

  // Kills the processes of these names ("trireme-server", "trireme-r2"), one after another and
  // `pause_s()` before each: those that `running` has started, or starts soon. How many were killed
  // before the job was over.
  int KillRanks(Running& running, const std::vector<std::string>& names,
                const std::function<double()>& pause_s);
  bool KillRank(Running& running, const std::string& name, int signal = SIGKILL);

  // What is left of a job that is over, in words; empty: nothing. Waits for it to go, up to `until`
  // on the clock.
  std::string Leftovers(double until);  // processes, files in memory, temporary files
  std::string Orphans(double until);    // processes
  // The first rank that the errors name, besides the table of all ranks; -1: none.
  static int FirstNamed(const std::string& err);

  int64_t SavedStep(const std::string& run) const;  // of the newest checkpoint; 0: none

  // What the newest checkpoint of a run with a server says of its clients, ranks first.
  struct ClientCounts {
    int64_t updates = 0, samples = 0, refused = 0, removed = 0;
  };
  std::vector<ClientCounts> SavedClients(const std::string& run) const;
  // Waits until `enough` of them; false if the run ends before, or takes too long.
  bool AwaitClients(Running& running, const std::string& run,
                    const std::function<bool(const std::vector<ClientCounts>&)>& enough) const;

  // The finished run of a server with Iris: in its counters every position of every epoch, once.
  void ExpectIrisCountedOnce(const std::string& run, int64_t epochs) const;

  Words environment_;  // of every job: an `env` with its settings

 private:
  std::vector<pid_t> Processes() const;  // that work in the test's folder
  std::set<std::string> shared_before_;
};

}  // namespace trireme::whole
