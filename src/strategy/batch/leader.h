#pragma once
#include "strategy/batch/batch_objective.h"
#include "strategy/batch/peers.h"
#include "strategy/batch/portion_board.h"

namespace trireme {

// Rank 0 of several: says what to do and hands out portions; vectors and samples are the workers'
// (strategy/batch/batch_worker.h). One thread.
class BatchLeader : public BatchObjective {
 public:
  // `stall_s`: a worker that says nothing for so long, while it is waited for, ends the run; 0:
  // none does.
  BatchLeader(World& world, const Layout& layout, int num_portions, bool backups,
              double stall_s = 0);

  double Dot(int x, int y) override;
  void Scale(double a, int x) override;
  void Axpy(double a, int x, int y) override;
  void Copy(int from, int to) override;
  double Evaluate(int point, int gradient) override;
  void Put(int vector, std::span<const float> values) override;
  void Get(int vector, std::span<float> values) override;
  void Show(int vector, std::span<const float> statistics) override;
  void Meet(int64_t what) override { TellAll(Say(BatchWord::kMeet, {what})); }
  void End(int signal) override { TellAll(Say(BatchWord::kEnd, {signal})); }

  int signal() const override { return signal_; }
  Traffic traffic() const override;
  std::vector<ClientStats> worker_stats() const override { return stats_; }
  int64_t given_twice() const { return board_.given_twice(); }

 private:
  void TellAll(const Message& message);
  bool Take(int worker, Message& message);
  void Wait(const std::vector<bool>& answered);
  Message Await(int worker, BatchWord word);
  bool TakeLateReport(int worker, const Message& message);
  void HearReport(int worker, const Message& message);
  void AnswerIdle();
  void SendNext(int worker, bool counts, int portion);

  Peers peers_;
  const Layout layout_;
  const int workers_;
  PortionBoard board_;
  int64_t round_ = 0;  // gradients and states that were asked for
  int64_t parts_ = 0;  // of this round, that count
  bool over_ = true;   // all of its portions are there
  std::vector<bool> idle_;
  std::vector<ClientStats> stats_;
  std::vector<double> idle_since_;
  int signal_ = 0;
  double waited_s_ = 0;
  const double stall_s_;
  double heard_s_ = 0;  // when anything was heard last, or asked first
};

}  // namespace trireme
