#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "strategy/batch/portion_thread.h"
#include "strategy/batch/vectors.h"

namespace trireme {

// A rank that does what the leader says (strategy/batch/leader.h): holds a stretch of every vector,
// and computes portions. One thread, beside that of the portions.
class BatchWorker {
 public:
  struct Setup {
    World& world;
    PortionGradient& portions;
    const Layout& layout;
    int vectors = 0;
    double decay = 0;
    std::function<int()> signal;             // see PortionThread
    std::function<void(int64_t what)> meet;  // BatchObjective::Meet; portions.state() is as shown
  };
  explicit BatchWorker(Setup setup);

  int Serve();  // until the leader ends it: the signal for which it does, or 0

  Traffic traffic() const;

 private:
  void HearLeader(const Message& message);
  void HearWorker(int rank, Message message);
  bool HearWorkers();
  void BeginGradient(const Message& message);
  void ShowState(const Message& message);
  std::vector<float> Gather(int64_t round, int vector);
  void AddPart(const Message& message);
  void FinishIfComplete();

  const Setup setup_;
  Peers peers_;
  const int worker_, workers_;
  const std::unique_ptr<Queue> queue_;  // of the vectors
  Vectors vectors_;
  Buffer scratch_;
  bool ended_ = false;
  int signal_ = 0;  // for which
  int64_t round_ = 0;
  int point_ = 0, gradient_ = 0;       // vectors of the round
  int64_t parts_ = 0, expected_ = -1;  // of the round's gradient; -1: not known yet
  bool adding_ = false;                // parts of this round may be added
  std::vector<Message> early_;         // from workers that are a round ahead
  std::vector<bool> arrived_;          // stretches of Gather, by worker
  int num_arrived_ = 0;
  std::vector<float> whole_;  // what Gather fills
  PortionThread thread_;
};

}  // namespace trireme
